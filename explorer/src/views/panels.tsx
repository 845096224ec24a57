// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useMemo, useState } from "react";
import type { Annotation, Chain, Row, Statistics } from "../data/source";
import { cell, duration, percent, significant } from "../format";
import { Await, Empty, useLoaded, useSession, useSettledWindow } from "../parts/common";
import { download } from "../parts/csv";
import { type Column, DataTable } from "../parts/table";
import { notify } from "../session";
import { useStore } from "../store";
import { title } from "./details";
import { loadDevices } from "./devices";
import { Figures, figuresOf } from "./figures";
import { DeviceTable, Scenarios } from "./summary";

/** The chain that sets the profile's time, what each kernel waits for, and what a faster machine would give. */
export function CriticalPathPanel() {
  const session = useSession();
  const { profile } = session;
  const loaded = useLoaded(
    () =>
      Promise.all([
        session.rows("CriticalPath", { limit: 100000, order: "step" }),
        session.rows("WhatIf"),
        session.rows("Summary"),
      ]),
    [session],
  );
  const [kernel, setKernel] = useState("");
  return (
    <Await loaded={loaded}>
      {([steps, scenarios, summaries]) => {
        if (!steps.length)
          return <Empty title="No critical path">The profile was made without the dependencies between events.</Empty>;
        const kernels = [...new Set(steps.map((row) => String(row.kernel_name ?? "")))].filter(Boolean);
        const shown = kernel ? steps.filter((row) => row.kernel_name === kernel) : steps;
        const total = shown.reduce((sum, row) => sum + Number(row.duration_ns), 0) || 1;
        const by = (key: string) => {
          const sums = new Map<string, number>();
          for (const row of shown)
            sums.set(String(row[key]), (sums.get(String(row[key])) ?? 0) + Number(row.duration_ns));
          return [...sums.entries()].sort((a, b) => b[1] - a[1]);
        };
        return (
          <div className="critical">
            <div className="critical-head">
              <label>
                Kernel{" "}
                <select value={kernel} onChange={(event) => setKernel(event.target.value)}>
                  <option value="">all ({kernels.length})</option>
                  {kernels.map((name) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              </label>
              <div>
                <h3>Time by engine</h3>
                {by("engine").map(([name, time]) => (
                  <p key={name}>
                    {name}: <strong>{percent(time / total)}</strong> <span className="muted">{duration(time)}</span>
                  </p>
                ))}
              </div>
              <div>
                <h3>By what it waited for</h3>
                {by("wait_reason").map(([name, time]) => (
                  <p key={name}>
                    {name}: <strong>{percent(time / total)}</strong> <span className="muted">{duration(time)}</span>
                  </p>
                ))}
              </div>
              {scenarios.length > 0 && (
                <div className="grow">
                  <h3>What if</h3>
                  <Scenarios rows={scenarios} total={Number(summaries[0]?.total_time ?? 0) * 1e9} />
                </div>
              )}
            </div>
            <DataTable
              label="Critical path"
              rows={shown}
              rowKey={(row) => row.row}
              exportName={`${profile.name}-critical-path`}
              onSelect={(row) => session.selectRow(String(row.table), Number(row.row_id), Number(row.start_ts))}
              columns={[
                { key: "step", numeric: true, width: 60 },
                { key: "engine", width: 80 },
                { key: "start_ts", title: "From", numeric: true },
                { key: "duration_ns", title: "Sets the time for", numeric: true },
                { key: "wait_reason", title: "Waited for", width: 100 },
                { key: "kernel_name", title: "Kernel" },
                { key: "table", width: 110 },
              ]}
            />
          </div>
        );
      }}
    </Await>
  );
}

/** Sums over the whole profile, the view or a box. */
export function StatisticsPanel() {
  const session = useSession();
  const box = useStore(session.box);
  const settled = useSettledWindow();
  const [scope, setScope] = useState<"view" | "box" | "all">("view");
  useEffect(() => {
    if (box) setScope("box");
    else setScope((now) => (now === "box" ? "view" : now));
  }, [box]);
  const range = scope === "box" && box ? box : scope === "view" ? settled : undefined;
  const slices = useStore(session.slices);
  const start = range ? Math.max(0, range.start) : 0;
  const end = range ? Math.min(range.end, slices?.end ?? range.end) : (slices?.end ?? 1);
  const tracks = scope === "box" && box ? box.tracks : undefined;
  const key = tracks?.join("\n");
  const loaded = useLoaded<Statistics>(
    () =>
      session.isSystem
        ? Promise.resolve({ engines: [], queues: [], opcodes: [] })
        : session.source.statistics(
            session.profile.name,
            session.device,
            range ? start : undefined,
            range ? end : undefined,
            tracks,
          ),
    [session, scope, start, end, key],
  );
  const lanes = useMemo(() => {
    if (!slices) return [];
    const chosen = tracks && new Set(tracks);
    return slices.lanes
      .map((lane, index) => ({ lane, index }))
      .filter(({ lane }) => !chosen || chosen.has(lane.label))
      .map(({ lane, index }) => {
        let events = 0;
        for (let row = lane.firstRow; row < lane.firstRow + lane.rows; row++) {
          const first = slices.firstVisible(row, start);
          events += slices.lowerBound(end, first, slices.off[row + 1]) - first;
        }
        const busy = slices.busyLane(index, start, end);
        return { label: lane.label, events, busy, share: busy / Math.max(end - start, 1) };
      });
  }, [slices, start, end, key]);
  const total = end - start;
  return (
    <div className="statistics">
      <div className="table-tools">
        <div role="group" aria-label="Scope" className="segments">
          {(["all", "view", "box"] as const).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={scope === name}
              disabled={name === "box" && !box}
              onClick={() => setScope(name)}
            >
              {{ all: "Whole profile", view: "Current view", box: "Box" }[name]}
            </button>
          ))}
        </div>
        <span className="muted">
          {duration(start)} + {duration(total)}
        </span>
        {box && (
          <button type="button" className="quiet" onClick={() => session.timeline.get()?.clearBox()}>
            Clear box
          </button>
        )}
        {!box && <span className="muted">drag with shift held to select a box</span>}
      </div>
      {!session.isSystem && <Await loaded={loaded}>{(found) => <Sums found={found} total={total} />}</Await>}
      <DataTable
        label="Tracks"
        rows={lanes}
        rowKey={(lane) => lane.label}
        exportName={`${session.profile.name}-tracks`}
        columns={[
          { key: "label", title: "Track", width: 200 },
          { key: "events", numeric: true },
          { key: "busy", title: "Busy", numeric: true, render: (lane) => duration(lane.busy) },
          { key: "share", title: "Share of the time", numeric: true, render: (lane) => percent(lane.share) },
        ]}
      />
    </div>
  );
}

function Sums({ found, total }: { found: Statistics; total: number }) {
  const session = useSession();
  const constants = useLoaded<Row[]>(() => session.rows("Metadata"), [session]);
  const m = constants.state === "ready" ? constants.value[0] : undefined;
  return (
    <>
      <Figures figures={figuresOf(found, total, m)} />
      <div className="half">
        <DataTable
          label="Opcodes"
          rows={found.opcodes}
          columns={[
            { key: "engine", width: 80 },
            { key: "opcode" },
            { key: "instructions", numeric: true },
            { key: "time_ns", title: "Time", numeric: true },
            { key: "median_ns", title: "Median", numeric: true },
            { key: "longest_ns", title: "Longest", numeric: true },
          ]}
        />
      </div>
    </>
  );
}

/** Marks in the timeline, the time between them, and files to keep them in. */
export function AnnotationsPanel() {
  const session = useSession();
  const all = useStore(session.annotations);
  const [against, setAgainst] = useState("");
  const [unit, setUnit] = useState<"auto" | "ns" | "us" | "ms">("auto");
  const own = all.filter((mark) => mark.device === session.device).sort((a, b) => a.ts - b.ts);
  const base = own.find((mark) => mark.id === against);
  const change = (id: string, part: Partial<Annotation>) =>
    session.setAnnotations(all.map((mark) => (mark.id === id ? { ...mark, ...part } : mark)));
  const shown = (ns: number) =>
    unit === "auto"
      ? duration(ns)
      : `${significant(ns / { ns: 1, us: 1e3, ms: 1e6 }[unit], 8)} ${unit === "us" ? "µs" : unit}`;
  const snap = (mark: Annotation) => {
    const slices = session.slices.get();
    if (!slices) return;
    let best = mark.ts;
    let distance = Number.POSITIVE_INFINITY;
    for (let row = 0; row < slices.rowCount; row++) {
      const at = slices.lowerBound(mark.ts, slices.off[row], slices.off[row + 1]);
      for (const i of [at - 1, at]) {
        if (i < slices.off[row] || i >= slices.off[row + 1]) continue;
        for (const edge of [slices.ts[i], slices.ts[i] + slices.dur[i]]) {
          if (Math.abs(edge - mark.ts) < distance) {
            distance = Math.abs(edge - mark.ts);
            best = edge;
          }
        }
      }
    }
    change(mark.id, { ts: best });
  };
  const load = async (file: File) => {
    try {
      const found = JSON.parse(await file.text());
      if (!Array.isArray(found)) throw new Error("expected a list of annotations");
      const read = found.map((entry) => {
        if (typeof entry?.ts !== "number" || typeof entry?.name !== "string")
          throw new Error("expected annotations with a name and ts");
        return {
          id: crypto.randomUUID(),
          device: session.device,
          name: entry.name.slice(0, 200),
          ts: entry.ts,
          color: /^#[0-9a-f]{6}$/i.test(entry.color) ? entry.color : "#7b3fb5",
        };
      });
      session.setAnnotations([...all, ...read]);
    } catch (error) {
      notify(`${file.name} could not be loaded: ${(error as Error).message}`);
    }
  };
  return (
    <div className="annotations">
      <div className="table-tools">
        <button
          type="button"
          onClick={() => {
            const { start, end } = session.window.get();
            session.addAnnotation((start + end) / 2);
          }}
        >
          Create
        </button>
        <button
          type="button"
          className="quiet"
          onClick={() =>
            download(`${session.profile.name}-annotations.json`, JSON.stringify(own, null, 1), "application/json")
          }
        >
          Save
        </button>
        <label className="button quiet">
          Load
          <input
            type="file"
            accept=".json"
            className="visually-hidden"
            onChange={(event) => event.target.files?.[0] && load(event.target.files[0])}
          />
        </label>
        <button
          type="button"
          className="quiet"
          onClick={() => session.setAnnotations(all.filter((mark) => mark.device !== session.device))}
        >
          Clear all
        </button>
        <button type="button" className="quiet" disabled={!against} onClick={() => setAgainst("")}>
          Reset diff
        </button>
        <label>
          Unit{" "}
          <select value={unit} onChange={(event) => setUnit(event.target.value as typeof unit)}>
            <option value="auto">auto</option>
            <option value="ns">ns</option>
            <option value="us">µs</option>
            <option value="ms">ms</option>
          </select>
        </label>
      </div>
      {own.length === 0 && (
        <Empty title="No annotations">Right click in the timeline, or press M, to mark a moment.</Empty>
      )}
      {own.length > 0 && (
        <table className="plain">
          <thead>
            <tr>
              <th>Colour</th>
              <th>Name</th>
              <th className="number">Time</th>
              <th className="number">Diff</th>
              <th>Actions</th>
            </tr>
          </thead>
          <tbody>
            {own.map((mark) => (
              <tr key={mark.id}>
                <td>
                  <input
                    type="color"
                    aria-label={`Colour of ${mark.name}`}
                    value={mark.color}
                    onChange={(event) => change(mark.id, { color: event.target.value })}
                  />
                </td>
                <td>
                  <input
                    aria-label="Name"
                    value={mark.name}
                    maxLength={200}
                    onChange={(event) => change(mark.id, { name: event.target.value })}
                  />
                </td>
                <td className="number">{shown(mark.ts)}</td>
                <td className="number">
                  {base && base !== mark ? shown(mark.ts - base.ts) : base === mark ? "base" : ""}
                </td>
                <td>
                  <button
                    type="button"
                    className="quiet"
                    onClick={() => setAgainst(mark.id)}
                    aria-pressed={mark.id === against}
                  >
                    Diff
                  </button>
                  <button
                    type="button"
                    className="quiet"
                    onClick={() =>
                      base && base !== mark
                        ? session.show(Math.min(base.ts, mark.ts), Math.max(base.ts, mark.ts))
                        : session.show(mark.ts - 500, mark.ts + 500)
                    }
                  >
                    Zoom
                  </button>
                  <button
                    type="button"
                    className="quiet"
                    onClick={() => snap(mark)}
                    title="Move to the nearest edge of an event"
                  >
                    Snap
                  </button>
                  <button
                    type="button"
                    className="quiet"
                    onClick={() => session.setAnnotations(all.filter((other) => other.id !== mark.id))}
                  >
                    Delete
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** Variables of the program; a name leads to its transfers. */
export function TensorsPanel() {
  const session = useSession();
  const loaded = useLoaded<Row[]>(() => session.rows("TensorInfo", { limit: 50000 }), [session]);
  return (
    <Await loaded={loaded}>
      {(rows) => (
        <DataTable
          label="Tensors"
          rows={rows}
          filter
          exportName={`${session.profile.name}-tensors`}
          empty="The profile lists no variables."
          onSelect={(row) => session.open("search", `DmaPacketAggregated:variable=${row.variable_name}`)}
          columns={["variable_name", "type", "format", "shape"]
            .map((key): Column<Row> => ({ key }))
            .concat(
              [
                "size",
                "load_to_sbuf_dma_count",
                "load_to_sbuf_avg_size_bytes",
                "load_to_sbuf_total_size_bytes",
                "load_to_sbuf_repeat_factor",
              ].map(
                (key): Column<Row> => ({
                  key,
                  numeric: true,
                  title: {
                    load_to_sbuf_dma_count: "Loads",
                    load_to_sbuf_avg_size_bytes: "Average load",
                    load_to_sbuf_total_size_bytes: "Loaded",
                    load_to_sbuf_repeat_factor: "Times loaded",
                  }[key],
                }),
              ),
            )}
        />
      )}
    </Await>
  );
}

const TABLE_ROWS = 20000;

/** Every table of the profile as it is, with what its columns mean. */
export function TablesPanel() {
  const session = useSession();
  const names = Object.keys(session.tables).filter((name) => session.tables[name] > 0);
  const [table, setTable] = useState(names[0] ?? "");
  const loaded = useLoaded<[Row[], Record<string, string>]>(
    () =>
      table
        ? Promise.all([
            session.source.rows(session.profile.name, session.device, table, { limit: TABLE_ROWS }),
            session.source.fields(session.profile.name, session.device, table),
          ])
        : Promise.resolve([[], {}]),
    [session, table],
  );
  return (
    <div className="tables">
      <Await loaded={loaded}>
        {([rows, fields]) => (
          <DataTable
            key={table}
            label={table}
            rows={rows}
            filter
            exportName={`${session.profile.name}-${table}`}
            rowKey={(row) => row.row}
            onSelect={(row) => session.slices.get() && session.select(row, table)}
            tools={
              <select aria-label="Table" value={table} onChange={(event) => setTable(event.target.value)}>
                {names.map((name) => (
                  <option key={name} value={name}>
                    {name} ({session.tables[name].toLocaleString("en-US")})
                  </option>
                ))}
              </select>
            }
            columns={Object.entries(fields).map(([key, type]) => ({
              key,
              title: key,
              numeric: /int|double|float/.test(type) && key !== "id",
              width: 120,
              render: (row: Row) => cell(key, row[key]),
            }))}
          />
        )}
      </Await>
      {session.tables[table] > TABLE_ROWS && (
        <p className="muted">The first {TABLE_ROWS.toLocaleString("en-US")} rows; the exports hold all of them.</p>
      )}
    </div>
  );
}

/** From a framework call over the runtime to the device and back. */
export function ChainPanel() {
  const session = useSession();
  const selection = useStore(session.selection);
  const loaded = useLoaded<Chain | null>(
    () =>
      selection ? session.source.chain(session.profile.name, session.device, selection.row) : Promise.resolve(null),
    [session, selection?.row],
  );
  if (!selection) {
    return <Empty title="Dependency chain">Select an event to see what it came from and what it led to.</Empty>;
  }
  return (
    <Await loaded={loaded}>
      {(chain) =>
        chain && (
          <div className="chain">
            <div className="details-head">
              <h2>{title(chain.event)}</h2>
              <span className="badge">{String(chain.event.trace_event_source)}</span>
            </div>
            <ChainTable heading="Upstream events" rows={chain.upstream} />
            <ChainTable heading="Downstream events" rows={chain.downstream} />
          </div>
        )
      }
    </Await>
  );
}

function ChainTable({ heading, rows }: { heading: string; rows: Row[] }) {
  const session = useSession();
  return (
    <section>
      <h3>{heading}</h3>
      {rows.length === 0 ? (
        <p className="muted">There are none.</p>
      ) : (
        <table className="plain">
          <thead>
            <tr>
              <th>Event ID</th>
              <th>Flow ID</th>
              <th>Source</th>
              <th className="number">Duration</th>
            </tr>
          </thead>
          {rows.map((row) => (
            <tbody key={row.row}>
              <tr className="name">
                <td colSpan={4}>
                  <button type="button" className="link" onClick={() => session.select(row, "SystemProfileEvents")}>
                    {title(row)}
                  </button>
                </td>
              </tr>
              <tr>
                <td>{String(row.id)}</td>
                <td>{Array.isArray(row.flow_id) ? row.flow_id.join(", ") : ""}</td>
                <td>{String(row.trace_event_source)}</td>
                <td className="number">{duration(Number(row.duration_ns))}</td>
              </tr>
            </tbody>
          ))}
        </table>
      )}
    </section>
  );
}

export function DevicesPanel() {
  const session = useSession();
  const loaded = useLoaded(() => loadDevices(session), [session]);
  return (
    <Await loaded={loaded}>
      {(devices) => <DeviceTable devices={devices.entries} profile={session.profile.name} />}
    </Await>
  );
}
