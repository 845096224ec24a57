// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Series } from "./counters";
import type { Lane } from "./slices";

export const ROW_HEIGHT = 18;
const THIN_ROW_HEIGHT = 8;
export const HEADER_HEIGHT = 22;
const COUNTER_HEIGHT = 38;
const GAP = 3;
const MOST_LANE_HEIGHT = 14 * ROW_HEIGHT;

export type Track =
  | { kind: "header"; y: number; height: number; group: string; collapsed: boolean; count: number }
  | { kind: "lane"; y: number; height: number; lane: number; rowHeight: number; label: string; pinned: boolean }
  | { kind: "counter"; y: number; height: number; series: number; label: string; pinned: boolean };

export interface TrackOptions {
  collapsed: ReadonlySet<string>;
  hiddenGroups: ReadonlySet<string>;
  pinned: ReadonlySet<string>;
  /** Series that are drawn on demand only (partitions, banks, CPUs). */
  showHidden: ReadonlySet<string>;
}

export interface TrackList {
  tracks: Track[];
  height: number;
  groups: { name: string; count: number; hiddenSeries: number }[];
}

const GROUP_ORDER = [
  "Errors",
  "System",
  "Transfers",
  "Device memory",
  "Host",
  "CPU utilization",
  "Engines",
  "DMA queues",
  "DMA engines",
  "Collectives",
  "On-chip memory",
  "Throttling",
  "Semaphores",
  "DMA",
  "Throughput",
  "Utilisation",
];

function rank(group: string): number {
  const place = GROUP_ORDER.indexOf(group);
  return place < 0 ? GROUP_ORDER.length : place;
}

/** Tracks from top to bottom: what is pinned, then the groups in their order. */
export function layOut(lanes: readonly Lane[], series: readonly Series[], options: TrackOptions): TrackList {
  const members = new Map<string, { lanes: number[]; series: number[]; hidden: number }>();
  const group = (name: string) => {
    let entry = members.get(name);
    if (!entry) {
      entry = { lanes: [], series: [], hidden: 0 };
      members.set(name, entry);
    }
    return entry;
  };
  lanes.forEach((lane, index) => {
    group(lane.group).lanes.push(index);
  });
  series.forEach((entry, index) => {
    const owner = group(entry.info.group);
    if (entry.info.hidden) owner.hidden++;
    if (!entry.info.hidden || options.showHidden.has(entry.info.group)) owner.series.push(index);
  });
  const tracks: Track[] = [];
  let y = 0;
  const addLane = (index: number, pinned: boolean) => {
    const { rows, label } = lanes[index];
    const wanted = rows > 4 ? THIN_ROW_HEIGHT : ROW_HEIGHT;
    const height = Math.min(rows * wanted, MOST_LANE_HEIGHT);
    tracks.push({ kind: "lane", y, height, lane: index, rowHeight: height / rows, label, pinned });
    y += height + GAP;
  };
  const counter = (index: number, pinned: boolean) => {
    tracks.push({ kind: "counter", y, height: COUNTER_HEIGHT, series: index, label: series[index].info.label, pinned });
    y += COUNTER_HEIGHT + GAP;
  };
  const header = (name: string, count: number, collapsed: boolean) => {
    tracks.push({ kind: "header", y, height: HEADER_HEIGHT, group: name, collapsed, count });
    y += HEADER_HEIGHT;
  };
  if (options.pinned.size) {
    const pinnedLanes = lanes
      .map((entry, index) => ({ entry, index }))
      .filter((l) => options.pinned.has(l.entry.label));
    const counters = series
      .map((entry, index) => ({ entry, index }))
      .filter((s) => options.pinned.has(s.entry.info.label));
    const found = pinnedLanes.length + counters.length;
    if (found) {
      header("Pinned", found, false);
      for (const { index } of pinnedLanes) addLane(index, true);
      for (const { index } of counters) counter(index, true);
    }
  }
  const names = [...members.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const groups = [];
  for (const name of names) {
    const entry = members.get(name)!;
    const total = entry.lanes.length + entry.series.length;
    groups.push({ name, count: total + (options.showHidden.has(name) ? 0 : entry.hidden), hiddenSeries: entry.hidden });
    if (options.hiddenGroups.has(name)) continue;
    if (!total && !entry.hidden) continue;
    const collapsed = options.collapsed.has(name) || !total;
    header(name, total, collapsed);
    if (collapsed) continue;
    for (const index of entry.lanes) addLane(index, false);
    for (const index of entry.series) counter(index, false);
  }
  return { tracks, height: y + 8, groups };
}
