// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useMemo, useRef, useState } from "react";
import type { DataSource, ProfileEntry, Row } from "../data/source";
import { cell, duration, heading, significant } from "../format";
import { Await, useLoaded } from "../parts/common";
import { DataTable } from "../parts/table";
import { go, note, route } from "../route";
import { useStore } from "../store";
import { seriesOf } from "../timeline/counters";
import { Slices } from "../timeline/slices";
import { TimelineView } from "../timeline/view";

const ZOOM_MODES = ["relative", "absolute", "synchronised"] as const;
type ZoomMode = (typeof ZOOM_MODES)[number];
const ZOOM_HELP: Record<ZoomMode, string> = {
  relative: "the same share of each profile",
  absolute: "the same length of time, each from its own start",
  synchronised: "the same range of time in both",
};

interface Side {
  profile: string;
  device: string;
}

function parse(text: string | undefined): Side {
  const at = (text ?? "").indexOf("/");
  return at < 0 ? { profile: text ?? "", device: "" } : { profile: text!.slice(0, at), device: text!.slice(at + 1) };
}

/** Two device profiles below one another: timelines, metrics and operators with their differences. */
export function ComparePage({ source }: { source: DataSource }) {
  const current = useStore(route);
  const [sides, setSides] = useState([parse(current.query.a), parse(current.query.b)]);
  const [base, setBase] = useState(0);
  const [mode, setMode] = useState<ZoomMode>("relative");
  const listed = useLoaded(() => source.profiles(), [source]);
  useEffect(() => {
    note({ a: `${sides[0].profile}/${sides[0].device}`, b: `${sides[1].profile}/${sides[1].device}` });
  }, [sides]);
  const complete = sides.every((side) => side.profile && side.device);
  return (
    <main className="compare" tabIndex={0}>
      <div className="compare-head">
        <h1>Comparison</h1>
        <Await loaded={listed}>
          {({ profiles }) => (
            <>
              {sides.map((side, index) => (
                <Chooser
                  key={index}
                  label={index === base ? "Base" : "Compared"}
                  side={side}
                  profiles={profiles}
                  onChange={(next) => setSides((now) => now.map((entry, i) => (i === index ? next : entry)))}
                />
              ))}
            </>
          )}
        </Await>
        <button type="button" onClick={() => setBase(1 - base)}>
          Swap base
        </button>
        <label>
          Zoom{" "}
          <select value={mode} onChange={(event) => setMode(event.target.value as ZoomMode)} title={ZOOM_HELP[mode]}>
            {ZOOM_MODES.map((name) => (
              <option key={name} value={name}>
                {name}: {ZOOM_HELP[name]}
              </option>
            ))}
          </select>
        </label>
        <span className="spacer" />
        <button type="button" onClick={() => go({ page: "profiles" })}>
          Profiles
        </button>
      </div>
      {complete ? (
        <Comparison source={source} sides={sides} base={base} mode={mode} />
      ) : (
        <p className="empty">Choose two device profiles.</p>
      )}
    </main>
  );
}

function Chooser({
  label,
  side,
  profiles,
  onChange,
}: {
  label: string;
  side: Side;
  profiles: ProfileEntry[];
  onChange: (side: Side) => void;
}) {
  const options = profiles
    .filter((entry) => entry.status === "PROCESSED")
    .flatMap((entry) => entry.devices.map((device) => ({ profile: entry.name, device })));
  return (
    <label>
      {label}{" "}
      <select
        value={side.device ? `${side.profile}/${side.device}` : ""}
        onChange={(event) => onChange(parse(event.target.value))}
      >
        <option value="">–</option>
        {options.map((option) => (
          <option key={`${option.profile}/${option.device}`} value={`${option.profile}/${option.device}`}>
            {option.profile} / {option.device}
          </option>
        ))}
      </select>
    </label>
  );
}

function Comparison({
  source,
  sides,
  base,
  mode,
}: {
  source: DataSource;
  sides: Side[];
  base: number;
  mode: ZoomMode;
}) {
  const key = sides.map((side) => `${side.profile}/${side.device}`).join(" ");
  const loaded = useLoaded(
    () =>
      Promise.all(
        sides.map(async ({ profile, device }) => ({
          slices: new Slices(await source.slices(profile, device)),
          series: seriesOf(await source.counters(profile, device)),
          summary: (await source.rows(profile, device, "Summary").catch(() => []))[0] as Row | undefined,
          operators: await source.operators(profile, device),
          kernels: await source.rows(profile, device, "KernelRoofline", { limit: 20000 }).catch(() => [] as Row[]),
        })),
      ),
    [source, key],
  );
  const views = useRef<(TimelineView | null)[]>([null, null]);
  const follow = useRef(mode);
  follow.current = mode;
  const moving = useRef(false);
  const moved = (from: number, start: number, end: number, ends: number[]) => {
    if (moving.current) return;
    const other = 1 - from;
    const view = views.current[other];
    if (!view) return;
    moving.current = true;
    if (follow.current === "relative")
      view.show((start / ends[from]) * ends[other], (end / ends[from]) * ends[other], false);
    else if (follow.current === "synchronised") view.show(start, end, false);
    else {
      const now = view.view;
      view.show(now.start, now.start + (end - start), false);
    }
    moving.current = false;
  };
  return (
    <Await loaded={loaded}>
      {(data) => {
        const ends = data.map((entry) => entry.slices.end);
        return (
          <>
            {sides.map((side, index) => (
              <section key={`${key}${index}`} className="compare-timeline" aria-label={`Timeline of ${side.profile}`}>
                <h2>
                  <a href={`#/p/${encodeURIComponent(side.profile)}/${encodeURIComponent(side.device)}`}>
                    {side.profile}
                  </a>{" "}
                  <span className="muted">
                    {side.device}, {duration(ends[index])}
                    {index === base ? ", base" : ""}
                  </span>
                </h2>
                <PlainTimeline
                  slices={data[index].slices}
                  series={data[index].series}
                  register={(view) => {
                    views.current[index] = view;
                  }}
                  moved={(start, end) => moved(index, start, end, ends)}
                />
              </section>
            ))}
            <div className="compare-tables">
              <Metrics rows={data.map((entry) => entry.summary)} base={base} />
              <Differences
                label="Operators"
                base={base}
                sums={data.map((entry) =>
                  sumBy(
                    entry.operators,
                    (row) => String(row.operator || row.kernel || "(none)"),
                    (row) => Number(row.time_ns),
                  ),
                )}
              />
              <Differences
                label="Kernels"
                base={base}
                sums={data.map((entry) =>
                  sumBy(
                    entry.kernels,
                    (row) => String(row.kernel_name),
                    (row) => Number(row.end_ts) - Number(row.start_ts),
                  ),
                )}
              />
            </div>
          </>
        );
      }}
    </Await>
  );
}

function sumBy<T>(rows: readonly T[], name: (row: T) => string, value: (row: T) => number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(name(row), (sums.get(name(row)) ?? 0) + value(row));
  return sums;
}

function PlainTimeline({
  slices,
  series,
  register,
  moved,
}: {
  slices: Slices;
  series: ReturnType<typeof seriesOf>;
  register: (view: TimelineView | null) => void;
  moved: (start: number, end: number) => void;
}) {
  const root = useRef<HTMLDivElement>(null);
  const report = useRef(moved);
  report.current = moved;
  useEffect(() => {
    const collapsed = new Set(["DMA engines", "Semaphores", "On-chip memory", "DMA", "Throughput"]);
    const options = {
      collapsed,
      hiddenGroups: new Set<string>(),
      pinned: new Set<string>(),
      showHidden: new Set<string>(),
    };
    const nothing = () => undefined;
    const view = new TimelineView(root.current!, options, {
      select: nothing,
      hover: nothing,
      view: (start, end) => report.current(start, end),
      box: nothing,
      activate: nothing,
      annotate: nothing,
      toggle: (group) => {
        if (!collapsed.delete(group)) collapsed.add(group);
        view.setOptions({ ...options });
      },
      pin: nothing,
      layout: nothing,
    });
    view.setData(slices, series);
    register(view);
    return () => {
      register(null);
      view.destroy();
    };
  }, [slices, series]);
  return <div className="timeline" ref={root} />;
}

interface Difference {
  name: string;
  base: number | null;
  other: number | null;
  delta: number;
  ratio: number;
}

function columnsOf(render: (row: Difference, value: number | null) => string) {
  return [
    { key: "name", width: 240 },
    { key: "base", title: "Base", numeric: true, render: (row: Difference) => render(row, row.base) },
    { key: "other", title: "Compared", numeric: true, render: (row: Difference) => render(row, row.other) },
    {
      key: "delta",
      title: "Difference",
      numeric: true,
      render: (row: Difference) =>
        `${row.delta > 0 ? "+" : row.delta < 0 ? "−" : ""}${render(row, Math.abs(row.delta))}`,
    },
    {
      key: "ratio",
      title: "Ratio",
      numeric: true,
      render: (row: Difference) => (Number.isFinite(row.ratio) ? `${significant(row.ratio, 3)}×` : "–"),
    },
  ];
}

function Metrics({ rows, base }: { rows: (Row | undefined)[]; base: number }) {
  const list = useMemo(() => {
    const names = Object.keys(rows[base] ?? rows[1 - base] ?? {}).filter((name) => name !== "row" && name !== "id");
    return names
      .map((name): Difference => {
        const one = rows[base]?.[name];
        const two = rows[1 - base]?.[name];
        const a = one === null || one === undefined ? null : Number(one);
        const b = two === null || two === undefined ? null : Number(two);
        return { name, base: a, other: b, delta: (b ?? 0) - (a ?? 0), ratio: a && b !== null ? b / a : Number.NaN };
      })
      .filter((row) => row.base !== null || row.other !== null);
  }, [rows, base]);
  const [changed, setChanged] = useState(false);
  const shown = changed ? list.filter((row) => row.delta !== 0) : list;
  const columns = columnsOf((row, value) => (value === null ? "–" : cell(row.name, value)));
  columns[0] = { key: "name", width: 240, render: (row: Difference) => heading(row.name) } as never;
  return (
    <section>
      <h2>Metrics</h2>
      <DataTable
        label="Metrics"
        rows={shown}
        rowKey={(row) => row.name}
        filter
        exportName="comparison"
        columns={columns}
        tools={
          <label>
            <input type="checkbox" checked={changed} onChange={(event) => setChanged(event.target.checked)} />{" "}
            differences only
          </label>
        }
      />
    </section>
  );
}

function Differences({ label, sums, base }: { label: string; sums: Map<string, number>[]; base: number }) {
  const list = useMemo(() => {
    const names = [...new Set([...sums[0].keys(), ...sums[1].keys()])];
    return names.map((name): Difference => {
      const a = sums[base].get(name) ?? null;
      const b = sums[1 - base].get(name) ?? null;
      return { name, base: a, other: b, delta: (b ?? 0) - (a ?? 0), ratio: a && b !== null ? b / a : Number.NaN };
    });
  }, [sums, base]);
  return (
    <section>
      <h2>{label}, time</h2>
      <DataTable
        label={label}
        rows={list}
        rowKey={(row) => row.name}
        filter
        exportName={`comparison-${label.toLowerCase()}`}
        initialSort={{ key: "delta", descending: true }}
        columns={columnsOf((_, value) => (value === null ? "–" : duration(value)))}
      />
    </section>
  );
}
