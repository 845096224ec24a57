// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useRef, useState } from "react";
import { byUnit, duration } from "../format";
import { useCalmWindow, useSession } from "../parts/common";
import { download, toCsv } from "../parts/csv";
import { route } from "../route";
import { COLOR_CHOICES, type ColorChoice, notify } from "../session";
import { useStore } from "../store";
import { GROUPINGS, type Grouping } from "../timeline/grouping";
import type { TrackList } from "../timeline/tracks";
import { type Arrow, type Hover, TimelineView } from "../timeline/view";
import { RegionBands } from "./regions";

const CSV_LIMIT = 200_000;

function toggled(set: ReadonlySet<string>, name: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(name)) next.add(name);
  return next;
}

export function TimelinePanel() {
  const session = useSession();
  const root = useRef<HTMLDivElement>(null);
  const view = useRef<TimelineView | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [groups, setGroups] = useState<TrackList["groups"]>([]);
  const [boxMode, setBoxMode] = useState(false);
  const status = useStore(session.status);
  const slices = useStore(session.slices);
  const overview = useStore(session.overview);
  const series = useStore(session.series);
  const options = useStore(session.options);
  const annotations = useStore(session.annotations);
  const hits = useStore(session.hits);
  const restored = useRef(false);

  useEffect(() => {
    const toggle = (group: string) =>
      session.setOptions((now) => ({ ...now, collapsed: toggled(now.collapsed, group) }));
    const made = new TimelineView(root.current!, session.options.get(), {
      select: (index) => {
        session.selectIndex(index);
        if (index >= 0) session.open("details");
      },
      hover: setHover,
      view: (start, end) => session.setWindow(start, end),
      box: (box) => {
        session.box.set(box);
        if (box) session.open("statistics");
      },
      activate: () => session.open(session.isSystem ? "chain" : "source"),
      annotate: (moment) => session.addAnnotation(moment),
      toggle: (group) => {
        // A group without drawn lanes holds series that are shown on demand.
        const entry = session.series.get().some((s) => s.info.group === group && !s.info.hidden);
        const drawn = session.slices.get() ?? session.overview.get();
        const lanes = drawn?.lanes.some((lane) => lane.group === group);
        if (!entry && !lanes) session.setOptions((now) => ({ ...now, showHidden: toggled(now.showHidden, group) }));
        else toggle(group);
      },
      pin: (label) => session.setOptions((now) => ({ ...now, pinned: toggled(now.pinned, label) })),
      layout: (list) => setGroups(list.groups),
    });
    view.current = made;
    session.timeline.set(made);
    const stop = new MutationObserver(() => made.repaint());
    stop.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => made.repaint();
    scheme.addEventListener("change", changed);
    return () => {
      scheme.removeEventListener("change", changed);
      stop.disconnect();
      session.timeline.set(null);
      made.destroy();
    };
  }, [session]);

  useEffect(() => {
    const timeline = view.current!;
    const keep = timeline.view;
    const again = restored.current;
    timeline.setData(slices, series, again, overview);
    if (again) timeline.show(keep.start, keep.end, false);
    if ((slices || overview) && !again) {
      restored.current = true;
      session.restore(route.get().query);
    }
    const selected = session.selection.get();
    if (!selected || !again) return;
    // What was chosen before its slice was there.
    if (slices && selected.index < 0) session.selectRow(selected.table, selected.row, undefined, !route.get().query.t);
    else timeline.select(selected.index);
  }, [session, slices, series, overview]);

  useEffect(() => view.current!.setOptions(options), [options]);
  useEffect(() => {
    const own = annotations.filter((mark) => mark.device === session.device);
    view.current!.setMarks([...own]);
  }, [session, annotations]);
  useEffect(() => view.current!.setHits([...hits]), [hits]);
  useEffect(() => {
    view.current!.boxMode = boxMode;
  }, [boxMode]);
  useArrows(view);

  const exportCsv = () => {
    const data = session.slices.get();
    if (!data) return;
    const found = view.current!.visibleSlices(CSV_LIMIT);
    if (found.length === CSV_LIMIT) notify(`only the first ${CSV_LIMIT} events of the view are saved`);
    const rows = found.map((i) => [
      data.lanes[data.laneOfSlice(i)].label,
      data.names[data.name[i]],
      data.ts[i],
      data.dur[i],
      data.colors[data.color[i]],
      data.lanes[data.laneOfSlice(i)].table,
      data.row[i],
    ]);
    const header = ["timeline_track", "name", "start_ts", "duration_ns", session.colorBy.get(), "table", "row"];
    download(`${session.profile.name}-${session.device}.csv`, toCsv(header, rows), "text/csv");
  };

  return (
    <div className="panel timeline-panel">
      <div className="toolbar" role="toolbar" aria-label="Timeline">
        <button type="button" onClick={() => view.current?.zoom(0.6)} title="Zoom in (W)" aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => view.current?.zoom(1.67)} title="Zoom out (S)" aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => view.current?.fit()} title="Show everything (0)">
          Fit
        </button>
        <button
          type="button"
          aria-pressed={boxMode}
          onClick={() => setBoxMode(!boxMode)}
          title="Select a box by dragging (also with shift held)"
        >
          Box select
        </button>
        {session.isSystem ? <GroupingChoice /> : <ColorChoiceMenu />}
        <details className="menu">
          <summary>Tracks</summary>
          <div className="menu-body">
            {groups.map((group) => (
              <label key={group.name}>
                <input
                  type="checkbox"
                  checked={!options.hiddenGroups.has(group.name)}
                  onChange={() =>
                    session.setOptions((now) => ({ ...now, hiddenGroups: toggled(now.hiddenGroups, group.name) }))
                  }
                />
                {group.name} <span className="muted">{group.count}</span>
              </label>
            ))}
            {groups.some((group) => group.hiddenSeries) && <hr />}
            {groups
              .filter((group) => group.hiddenSeries)
              .map((group) => (
                <label key={group.name}>
                  <input
                    type="checkbox"
                    checked={options.showHidden.has(group.name)}
                    onChange={() =>
                      session.setOptions((now) => ({ ...now, showHidden: toggled(now.showHidden, group.name) }))
                    }
                  />
                  {group.name === "CPU utilization" ? "Show CPU utilization" : `${group.name} in detail`}{" "}
                  <span className="muted">{group.hiddenSeries}</span>
                </label>
              ))}
          </div>
        </details>
        <button type="button" onClick={exportCsv} title="Save the events in view as CSV">
          CSV
        </button>
        <Highlighted />
        <span className="spacer" />
        <WindowSpan />
      </div>
      <div className="timeline" ref={root} />
      {!session.isSystem && <RegionBands />}
      {status === "loading" && (
        <div className="cover" role="status">
          Reading the profile …
        </div>
      )}
      {status === "error" && (
        <div className="cover error" role="alert">
          {session.error.get()}
        </div>
      )}
      {status === "ready" && slices?.count === 0 && (
        <div className="cover">
          <p>This profile holds no events. See the notices at the top for what the files said.</p>
        </div>
      )}
      {hover && <Tooltip hover={hover} root={root.current} />}
    </div>
  );
}

/** Arrows of the selected event's dependencies, as far as both ends are drawn. */
// Framework, its stream, runtime, device; an operator may launch several executions.
const CHAIN_STEPS = 4;
const CHAIN_BREADTH = 16;

function useArrows(view: React.RefObject<TimelineView | null>) {
  const session = useSession();
  const selection = useStore(session.selection);
  const slices = useStore(session.slices);
  useEffect(() => {
    let current = true;
    view.current?.setArrows([]);
    if (!selection || selection.index < 0 || !slices) return;
    const { source, profile, device } = session;
    const find = (row: Record<string, unknown>) => {
      const table = (row.table_name as string) ?? selection.table;
      return slices.find(table, row.row as number, session.fromTable(row.start_ts as number | string));
    };
    const ask = async () => {
      const arrows: Arrow[] = [];
      if (session.isSystem) {
        // The whole chain, from the framework's event to the execution on the device and back.
        for (const side of ["upstream", "downstream"] as const) {
          let reached = [{ row: selection.row, index: selection.index }];
          for (let step = 0; step < CHAIN_STEPS && reached.length; step++) {
            const chains = await Promise.all(
              reached.slice(0, CHAIN_BREADTH).map((event) => source.chain(profile.name, device, event.row)),
            );
            if (!current) return;
            const next: typeof reached = [];
            chains.forEach((chain, i) => {
              for (const row of chain[side]) {
                const index = find(row);
                if (index < 0) continue;
                const [from, to] = side === "upstream" ? [index, reached[i].index] : [reached[i].index, index];
                arrows.push({ from, to });
                next.push({ row: row.row as number, index });
              }
            });
            reached = next;
          }
        }
      } else {
        const event = await source.row(profile.name, device, selection.table, selection.row);
        if (!("id" in event) || selection.table === "SemaphoreUpdate") return;
        const links = await source.links(profile.name, device, selection.table, String(event.id));
        if (!current) return;
        for (const row of links.predecessors) arrows.push({ from: find(row), to: selection.index });
        for (const row of links.successors) arrows.push({ from: selection.index, to: find(row) });
      }
      view.current?.setArrows(arrows.filter((arrow) => arrow.from >= 0 && arrow.to >= 0));
    };
    ask().catch(() => undefined);
    return () => {
      current = false;
    };
  }, [session, selection, slices, view]);
}

function GroupingChoice() {
  const session = useSession();
  const grouping = useStore(session.grouping);
  return (
    <label className="choice">
      Group by
      <select value={grouping} onChange={(event) => session.regroup(event.target.value as Grouping)}>
        {GROUPINGS.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function ColorChoiceMenu() {
  const session = useSession();
  const colorBy = useStore(session.colorBy);
  return (
    <label className="choice">
      Colour by
      <select
        value={colorBy}
        onChange={(event) =>
          session.recolor(event.target.value as ColorChoice).catch((error: Error) => notify(error.message))
        }
      >
        {COLOR_CHOICES.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Highlighted() {
  const session = useSession();
  const highlight = useStore(session.highlight);
  if (!highlight) return null;
  const text = [...highlight].join(", ");
  return (
    <button type="button" className="chip" onClick={() => session.setHighlight(null)} title={text}>
      {text.length > 28 ? `${text.slice(0, 27)}…` : text} ✕
    </button>
  );
}

function WindowSpan() {
  // A text that changes with every frame would cost a layout of the page in each of them.
  const { start, end } = useCalmWindow();
  return (
    <span className="muted span" title="Start and length of the view">
      {duration(Math.max(0, start))} + {duration(end - start)}
    </span>
  );
}

function Tooltip({ hover, root }: { hover: Hover; root: HTMLElement | null }) {
  const session = useSession();
  const slices = session.slices.get();
  const lines: [string, string][] = [];
  let title = "";
  if (hover.slice >= 0 && slices) {
    const i = hover.slice;
    const lane = slices.lanes[slices.laneOfSlice(i)];
    title = slices.names[slices.name[i]];
    lines.push(["Track", lane.label]);
    lines.push(["Start", duration(slices.ts[i])]);
    lines.push(["Duration", duration(slices.dur[i])]);
    const color = slices.colors[slices.color[i]];
    if (color && color !== "(none)" && color !== title) lines.push([session.colorBy.get(), color]);
    if (slices.wait?.[i]) lines.push(["Waited", duration(slices.wait[i])]);
  } else if (hover.series >= 0) {
    const series = session.series.get()[hover.series];
    const at = series.at(hover.moment);
    title = series.info.label;
    lines.push(["Value", at < 0 ? "–" : byUnit(series.value[at], series.info.unit)]);
    lines.push(["Time", duration(hover.moment)]);
  }
  if (!title || !root) return null;
  const holder = root.querySelector(".tl-holder")?.getBoundingClientRect();
  const own = root.getBoundingClientRect();
  if (!holder) return null;
  const x = hover.x + holder.left - own.left;
  const y = hover.y + holder.top - own.top;
  const right = x > own.width - 320;
  const below = y < own.height * 0.6;
  return (
    <div
      className="tooltip"
      style={{
        left: right ? undefined : x + 14,
        right: right ? own.width - x + 14 : undefined,
        top: below ? y + 50 : undefined,
        bottom: below ? undefined : own.height - y + 14,
      }}
    >
      <strong>{title}</strong>
      {lines.map(([name, value]) => (
        <div key={name}>
          <span className="muted">{name}</span> {value}
        </div>
      ))}
    </div>
  );
}
