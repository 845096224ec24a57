// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { type ReactNode, useState } from "react";
import { isDark, seriesColor } from "../colors";
import type { Row, Statistics } from "../data/source";
import { bytes, byUnit, count, duration, percent, quantity, significant } from "../format";
import { Await, Empty, useLoaded, useSession } from "../parts/common";
import type { Region } from "../regions";
import { type DeviceEntry, loadDevices } from "./devices";
import { Figure, Figures, figuresOf } from "./figures";
import { RegionMenu } from "./regions";

/** One number of the summary, undefined if the profile does not have it. */
function pick(row: Row | undefined, name: string): number | undefined {
  const value = row?.[name];
  if (typeof value === "number") return value;
  if (typeof value === "string" && value !== "" && Number.isFinite(Number(value))) return Number(value);
  return undefined;
}

function Card({ title, children, wide }: { title: string; children: ReactNode; wide?: boolean }) {
  return (
    <section className={`card${wide ? " wide" : ""}`}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const MOST_BARS = 12;

interface Bar {
  label: string;
  parts: { name: string; share: number; color: string; hint?: string }[];
}

/** Horizontal bars of shares of the whole; what is left is free. */
function Bars({ bars, legend }: { bars: Bar[]; legend: { name: string; color: string }[] }) {
  return (
    <div className="bars">
      {bars.map((bar) => (
        <div key={bar.label} className="bar-row">
          <span className="bar-label">{bar.label}</span>
          <span
            className="bar"
            role="img"
            aria-label={`${bar.label}: ${bar.parts.map((part) => `${part.name} ${percent(part.share)}`).join(", ")}`}
          >
            {bar.parts.map((part) => (
              <span
                key={part.name}
                style={{ width: `${Math.max(0, Math.min(1, part.share)) * 100}%`, background: part.color }}
                title={`${part.name}: ${part.hint ?? percent(part.share)}`}
              />
            ))}
          </span>
          <span className="bar-value">{percent(bar.parts.reduce((sum, part) => sum + part.share, 0))}</span>
        </div>
      ))}
      <Legend items={legend} />
    </div>
  );
}

function Legend({ items }: { items: { name: string; color: string }[] }) {
  return (
    <div className="legend">
      {items.map((item) => (
        <span key={item.name}>
          <i style={{ background: item.color }} /> {item.name}
        </span>
      ))}
    </div>
  );
}

function Doughnut({
  label,
  parts,
  centre,
}: {
  label: string;
  parts: { name: string; value: number; color: string }[];
  centre: string;
}) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  let turned = 0;
  const length = 2 * Math.PI * 40;
  return (
    <svg viewBox="0 0 120 120" className="doughnut" role="img" aria-label={label}>
      {parts.map((part) => {
        const share = part.value / total;
        const at = turned;
        turned += share;
        return (
          <circle
            key={part.name}
            cx="60"
            cy="60"
            r="40"
            fill="none"
            stroke={part.color}
            strokeWidth="20"
            strokeDasharray={`${share * length} ${length}`}
            strokeDashoffset={-at * length}
            transform="rotate(-90 60 60)"
          >
            <title>{`${part.name}: ${percent(share)}`}</title>
          </circle>
        );
      })}
      <text x="60" y="60" textAnchor="middle" dominantBaseline="central" className="doughnut-text">
        {centre}
      </text>
    </svg>
  );
}

const ENGINES = ["tensor", "vector", "scalar", "gpsimd", "sync"];
const ENGINE_NAMES: Record<string, string> = {
  tensor: "Tensor",
  vector: "Vector",
  scalar: "Scalar",
  gpsimd: "GpSimd",
  sync: "Sync",
};

export function SummaryPage() {
  const session = useSession();
  return session.isSystem ? <SystemSummary /> : <DeviceSummary />;
}

export function Insights({ rows }: { rows: Row[] }) {
  const names = ["information", "information", "notable", "severe"];
  if (!rows.length) return <p className="muted">No rule found anything to improve.</p>;
  return (
    <ol className="insights">
      {rows.map((row) => {
        const severity = Math.max(0, Math.min(3, Number(row.severity)));
        return (
          <li key={row.row} className={`severity-${severity}`}>
            <span className="badge">{names[severity]}</span>
            <strong>{String(row.title)}</strong>
            <p>{String(row.symptom)}</p>
            <p className="suggestion">{String(row.suggestion)}</p>
          </li>
        );
      })}
    </ol>
  );
}

/** The whole profile, or the region that the menu names. */
function DeviceSummary() {
  const [region, setRegion] = useState<Region | null>(null);
  return (
    <div className="summary" id="summary">
      <RegionMenu region={region} choose={setRegion} />
      {region ? <RegionSummary key={region.id} region={region} /> : <WholeSummary />}
    </div>
  );
}

/** What the events of a stretch of time add up to. An instruction across its edge counts as a whole. */
function RegionSummary({ region }: { region: Region }) {
  const session = useSession();
  const { source, profile, device } = session;
  const loaded = useLoaded(
    () => Promise.all([session.rows("Metadata"), source.statistics(profile.name, device, region.start, region.end)]),
    [session],
  );
  const total = region.end - region.start;
  return (
    <Await loaded={loaded}>
      {([constants, statistics]) => {
        const dark = isDark();
        return (
          <div className="cards">
            <Card title={region.name} wide>
              <Figures
                figures={[
                  ["Start", duration(region.start)],
                  ["Duration", duration(total)],
                  ...figuresOf(statistics, total, constants[0]),
                ]}
              />
              <p className="muted">Of what touches the region; an event across its edge counts with all its bytes.</p>
            </Card>
            <Card title="Engine utilization">
              <TimeBars
                name="of the region's time"
                color={seriesColor(0, dark)}
                rows={statistics.engines.map((row) => timeOf(String(row.track), row, total))}
              />
            </Card>
            <Card title="DMA by queue">
              <QueueBars queues={statistics.queues} color={seriesColor(4, dark)} />
            </Card>
            <Card title="Time by opcode">
              <TimeBars
                name="of the region's time"
                color={seriesColor(3, dark)}
                rows={statistics.opcodes
                  .slice(0, MOST_BARS)
                  .map((row) => timeOf(`${row.engine} ${row.opcode}`, row, total))}
              />
            </Card>
          </div>
        );
      }}
    </Await>
  );
}

interface TimeRow {
  label: string;
  /** Of the time that is shown. */
  share: number;
  /** In ns. */
  time: number;
  instructions: number;
}

function timeOf(label: string, row: Statistics["engines"][number], total: number): TimeRow {
  const time = Number(row.time_ns);
  return { label, share: time / total, time, instructions: Number(row.instructions) };
}

function TimeBars({
  rows,
  name,
  color,
  legend = name,
}: {
  rows: TimeRow[];
  name: string;
  color: string;
  legend?: string;
}) {
  return (
    <Bars
      bars={rows.map(({ label, share, time, instructions }) => ({
        label,
        parts: [{ name, share, hint: `${duration(time)}, ${count(instructions)} instructions`, color }],
      }))}
      legend={[{ name: legend, color }]}
    />
  );
}

function QueueBars({ queues, color }: { queues: Statistics["queues"]; color: string }) {
  const moved = queues.reduce((sum, queue) => sum + Number(queue.bytes ?? 0), 0) || 1;
  return (
    <Bars
      bars={queues.slice(0, MOST_BARS).map((queue) => ({
        label: String(queue.track),
        parts: [
          {
            name: "bytes",
            share: Number(queue.bytes ?? 0) / moved,
            hint: `${bytes(Number(queue.bytes))} in ${count(Number(queue.transfers))} pieces of ${bytes(Number(queue.average_bytes))} on average`,
            color,
          },
        ],
      }))}
      legend={[{ name: "share of all bytes", color }]}
    />
  );
}

function WholeSummary() {
  const session = useSession();
  const { source, profile, device } = session;
  const loaded = useLoaded(
    () =>
      Promise.all([
        session.rows("Summary"),
        session.rows("Metadata"),
        session.rows("Insight"),
        session.rows("NeffHeader"),
        session.rows("OpcodeSummary"),
        session.rows("WhatIf"),
        source.statistics(profile.name, device),
        session.rows("Warning"),
      ]),
    [session],
  );
  return (
    <Await loaded={loaded}>
      {([summaries, constants, insights, headers, opcodes, scenarios, statistics, warnings]) => {
        const s = summaries[0];
        const m = constants[0];
        const dark = isDark();
        const color = (i: number) => seriesColor(i, dark);
        const total = pick(s, "total_time") ?? 0;
        const bandwidth = pick(m, "hbm_ddr_bandwidth") ?? 0;
        const read = pick(s, "hbm_read_bytes") ?? 0;
        const write = pick(s, "hbm_write_bytes") ?? 0;
        const reload = pick(s, "spill_reload_bytes") ?? 0;
        const save = pick(s, "spill_save_bytes") ?? 0;
        const could = bandwidth * total;
        const free = Math.max(0, could - read - write);
        const hfu = pick(s, "hfu_estimated_percent") ?? 0;
        const mfu = pick(s, "mfu_inst_estimated_percent") ?? pick(s, "mfu_estimated_percent") ?? 0;
        const engineBars = ENGINES.map((engine) => {
          const active = pick(s, `${engine}_engine_active_time_percent`) ?? 0;
          if (engine !== "tensor") {
            return { label: ENGINE_NAMES[engine], parts: [{ name: "active", share: active, color: color(0) }] };
          }
          const useful = Math.min(active, mfu);
          const transposing = Math.min(active - useful, Math.max(0, hfu - mfu));
          return {
            label: "Tensor",
            parts: [
              { name: "at peak rate (MFU)", share: useful, color: color(2) },
              { name: "transposing", share: transposing, color: color(1) },
              { name: "active", share: active - useful - transposing, color: color(0) },
            ],
          };
        });
        return (
          <div className="cards">
            <Card title="Compute performance">
              <div className="figures">
                <Figure
                  label="Total runtime"
                  value={duration(total * 1e9)}
                  hint="from the first to the last event; modelled"
                />
                <Figure
                  label="Model FLOPS utilization"
                  value={percent(pick(s, "mfu_estimated_percent") ?? mfu)}
                  hint={
                    pick(s, "model_flops")
                      ? `operations of the model's matmuls / (peak × time); of the instructions that do not transpose: ${percent(mfu)}`
                      : "operations without transposes / (peak × time)"
                  }
                />
                <Figure
                  label="Hardware FLOPS utilization"
                  value={percent(hfu)}
                  hint="operations of the tensor engine / (peak × time)"
                />
                <Figure
                  label="Matmul arithmetic intensity"
                  value={`${significant(pick(s, "mm_arithmetic_intensity") ?? 0)} FLOP/B`}
                  hint={`${significant(pick(s, "peak_flops_bandwidth_ratio") ?? 0)} FLOP/B is where memory and compute balance`}
                />
                <Figure
                  label="Instructions"
                  value={count(statistics.engines.reduce((sum, e) => sum + Number(e.instructions ?? 0), 0))}
                />
                <Figure label="Hardware operations" value={quantity(pick(s, "hardware_flops"), "FLOP")} />
              </div>
              {m?.is_simulation === true && (
                <p className="muted">Times follow from the machine model; nothing was measured on hardware.</p>
              )}
            </Card>
            <Card title="Insights">
              <Insights rows={insights} />
            </Card>
            <Card title="Engine utilization">
              <Bars
                bars={engineBars}
                legend={[
                  { name: "active", color: color(0) },
                  { name: "at peak rate (MFU)", color: color(2) },
                  { name: "transposing", color: color(1) },
                ]}
              />
            </Card>
            <Card title="Memory bandwidth utilization">
              <div className="split">
                <Doughnut
                  label={`Device memory bandwidth: ${percent(could ? (read + write) / could : 0)} used`}
                  centre={percent(pick(s, "mbu_estimated_percent") ?? (could ? (read + write) / could : 0))}
                  parts={[
                    { name: "read", value: Math.max(0, read - reload), color: color(0) },
                    { name: "written", value: Math.max(0, write - save), color: color(2) },
                    { name: "spill reload", value: reload, color: color(1) },
                    { name: "spill save", value: save, color: color(4) },
                    { name: "unused", value: free, color: "var(--line)" },
                  ]}
                />
                <div>
                  <Legend
                    items={[
                      { name: `read ${bytes(read - reload)}`, color: color(0) },
                      { name: `written ${bytes(write - save)}`, color: color(2) },
                      { name: `spill reload ${bytes(reload)}`, color: color(1) },
                      { name: `spill save ${bytes(save)}`, color: color(4) },
                      { name: `unused ${bytes(free)}`, color: "var(--line)" },
                    ]}
                  />
                  <div className="figures small">
                    <Figure label="Bandwidth available" value={byUnit(bandwidth, "B/s")} />
                    <Figure
                      label="Average DMA size"
                      value={bytes(pick(s, "dma_transfer_average_bytes"))}
                      hint="32 KiB or more keeps the engines efficient"
                    />
                    <Figure
                      label="Useful reads"
                      value={percent(read ? (read - reload) / read : 0)}
                      hint="reads that are no spill reloads"
                    />
                    <Figure label="DMA active" value={percent(pick(s, "dma_active_time_percent"))} />
                  </div>
                </div>
              </div>
            </Card>
            <Card title="DMA by queue">
              <QueueBars queues={statistics.queues} color={color(4)} />
            </Card>
            <Card title="Time by opcode">
              <TimeBars
                name="of the whole time"
                legend="share of the whole time"
                color={color(3)}
                rows={[...opcodes]
                  .sort((a, b) => Number(b.active_time_ns) - Number(a.active_time_ns))
                  .slice(0, MOST_BARS)
                  .map((row) => ({
                    label: `${row.engine} ${row.opcode}`,
                    share: Number(row.active_time_percent),
                    time: Number(row.active_time_ns),
                    instructions: Number(row.instruction_count),
                  }))}
              />
            </Card>
            {scenarios.length > 0 && (
              <Card title="What if">
                <Scenarios rows={scenarios} total={total * 1e9} />
              </Card>
            )}
            <Card title="Program and machine">
              <dl className="fields compact">
                {[
                  ["Network", headers[0]?.network_name],
                  ["NEFF hash", headers[0]?.hash],
                  ["NEFF uuid", headers[0]?.uuid],
                  ["Machine", m?.instance_type],
                  ["Compiler", m?.compiler_version ?? headers[0]?.build_version],
                  ["Runtime", m?.runtime_version],
                  ["Explorer", m?.explorer_version],
                  [
                    "Tensor engine",
                    m
                      ? `${m.tensor_engine_num_rows} × ${m.tensor_engine_num_cols} at ${m.tensor_engine_clock_freq} GHz`
                      : null,
                  ],
                  ["Schema", m?.profile_schema_version],
                ]
                  .filter(([, value]) => value)
                  .map(([name, value]) => (
                    <div key={String(name)}>
                      <dt>{String(name)}</dt>
                      <dd>{String(value)}</dd>
                    </div>
                  ))}
              </dl>
              {warnings.map((row) => (
                <p key={row.row} className="warning">
                  {String(row.message)}
                </p>
              ))}
            </Card>
          </div>
        );
      }}
    </Await>
  );
}

export function Scenarios({ rows, total }: { rows: Row[]; total: number }) {
  const longest = Math.max(total, ...rows.map((row) => Number(row.total_time_ns)), 1);
  return (
    <div className="bars">
      <div className="bar-row">
        <span className="bar-label">as it is</span>
        <span className="bar">
          <span style={{ width: `${(total / longest) * 100}%`, background: "var(--muted)" }} />
        </span>
        <span className="bar-value">{duration(total)}</span>
      </div>
      {rows.map((row) => (
        <div className="bar-row" key={row.row}>
          <span className="bar-label">{String(row.scenario)}</span>
          <span className="bar">
            <span style={{ width: `${(Number(row.total_time_ns) / longest) * 100}%`, background: "var(--accent)" }} />
          </span>
          <span className="bar-value">
            {duration(Number(row.total_time_ns))} ({significant(Number(row.speedup), 3)}×)
          </span>
        </div>
      ))}
      <p className="muted">The timing model ran again with that part of the machine changed.</p>
    </div>
  );
}

function SystemSummary() {
  const session = useSession();
  const { profile } = session;
  const loaded = useLoaded(
    () =>
      Promise.all([
        session.rows("SystemProfileHbmUsage", { limit: 20000, order: "timestamp" }),
        loadDevices(session),
        session.rows("Insight"),
      ]),
    [session],
  );
  const slices = session.slices.get();
  const keys = slices ? new Set(slices.lanes.map((lane) => lane.label.split("/")[1])) : new Set();
  const instances = slices ? new Set(slices.lanes.map((lane) => lane.label.split("/")[0])) : new Set();
  return (
    <Await loaded={loaded}>
      {([memory, devices, insights]) => {
        return (
          <div className="summary">
            <div className="cards">
              <Card title="Overview">
                <div className="figures">
                  <Figure label="Instances" value={count(instances.size)} />
                  <Figure
                    label="Processes"
                    value={count([...keys].filter((key) => String(key).startsWith("PID:")).length)}
                  />
                  <Figure label="System profile time" value={duration(slices?.end ?? 0)} />
                  <Figure
                    label="Device runtime"
                    value={duration(devices.total)}
                    hint="sum of nc_exec_running; modelled"
                  />
                  <Figure label="Executions" value={count(devices.executions)} />
                  <Figure label="Device profiles" value={count(profile.devices.length)} />
                </div>
              </Card>
              {insights.length > 0 && (
                <Card title="Insights">
                  <Insights rows={insights} />
                </Card>
              )}
              <Card title="Device memory" wide>
                {memory.length ? (
                  <MemoryChart rows={memory} />
                ) : (
                  <p className="muted">The capture holds no samples of device memory.</p>
                )}
              </Card>
              <Card title="Device profiles" wide>
                <DeviceTable devices={devices.entries} profile={profile.name} />
              </Card>
            </div>
          </div>
        );
      }}
    </Await>
  );
}

export function DeviceTable({ devices, profile }: { devices: DeviceEntry[]; profile: string }) {
  if (!devices.length) {
    return <Empty title="No device profiles">Capture with ProfileMode.DEVICE to get one for each program.</Empty>;
  }
  return (
    <table className="plain">
      <thead>
        <tr>
          <th>Profile</th>
          <th className="number">Calls</th>
          <th className="number" title="Sum of its nc_exec_running, with the fixed cost of each; modelled">
            Total
          </th>
          <th className="number" title="One execution without its fixed cost; modelled">
            Kernel
          </th>
          <th className="number">MFU</th>
          <th className="number">HFU</th>
          <th className="number">MBU</th>
          <th className="number">DMA active</th>
        </tr>
      </thead>
      <tbody>
        {devices.map(({ name, summary, calls, total }) => (
          <tr key={name}>
            <td>
              <a href={`#/p/${encodeURIComponent(profile)}/${encodeURIComponent(name)}`}>{name}</a>
            </td>
            <td className="number">{calls ? count(calls) : ""}</td>
            <td className="number">{calls ? duration(total) : ""}</td>
            <td className="number">{duration((pick(summary, "total_time") ?? 0) * 1e9)}</td>
            <td className="number">{percent(pick(summary, "mfu_estimated_percent"))}</td>
            <td className="number">{percent(pick(summary, "hfu_estimated_percent"))}</td>
            <td className="number">{percent(pick(summary, "mbu_estimated_percent"))}</td>
            <td className="number">{percent(pick(summary, "dma_active_time_percent"))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Stacked area of the categories of device memory over time. */
function MemoryChart({ rows }: { rows: Row[] }) {
  const dark = isDark();
  const names = Object.keys(rows[0]).filter((name) => name.endsWith("_bytes") && name !== "total_bytes");
  const used = names.filter((name) => rows.some((row) => Number(row[name]) > 0));
  const width = 900;
  const height = 180;
  const first = BigInt(rows[0].timestamp as string | number);
  const times = rows.map((row) => Number(BigInt(row.timestamp as string | number) - first));
  const last = Math.max(...times, 1);
  const most = Math.max(...rows.map((row) => Number(row.total_bytes)), 1);
  const x = (t: number) => (t / last) * width;
  const y = (v: number) => height - (v / most) * (height - 10);
  const below = rows.map(() => 0);
  const areas = used.map((name, index) => {
    const lower = rows.map((_, i) => `${x(times[i])},${y(below[i])}`);
    rows.forEach((row, i) => {
      below[i] += Number(row[name]);
    });
    const upper = rows.map((_, i) => `${x(times[i])},${y(below[i])}`);
    return { name, color: seriesColor(index, dark), path: `M${upper.join("L")}L${lower.reverse().join("L")}Z` };
  });
  return (
    <>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        className="chart"
        role="img"
        aria-label={`Device memory over time, at most ${bytes(most)}`}
        preserveAspectRatio="none"
      >
        {areas.map((area) => (
          <path key={area.name} d={area.path} fill={area.color}>
            <title>{area.name}</title>
          </path>
        ))}
      </svg>
      <Legend
        items={areas.map((area) => ({
          name: area.name.replace(/_bytes$/, "").replaceAll("_", " "),
          color: area.color,
        }))}
      />
      <p className="muted">At most {bytes(most)}.</p>
    </>
  );
}
