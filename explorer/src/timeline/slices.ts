// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Indexes, Moments, SliceColumns } from "../data/drawn";

const FAN = 8;

/** A lane is one labelled track; its events may need several rows, so that no row overlaps itself. */
export interface Lane {
  label: string;
  group: string;
  table: string;
  firstRow: number;
  rows: number;
}

export interface LanePlan {
  lanes: { label: string; group: string; table: string }[];
  /** Lane of each key of the columns; -1 leaves its events out. */
  laneOf: Int32Array;
}

/** Slices ordered by row and start, with the indexes that make drawing and picking independent of their number. */
export class Slices {
  readonly count: number;
  readonly end: number;
  readonly base: bigint;
  readonly lanes: Lane[];
  readonly rowCount: number;
  readonly names: string[];
  colors: string[];
  readonly ts: Moments;
  readonly dur: Moments;
  readonly name: Uint16Array | Uint32Array;
  color: Uint16Array;
  readonly row: Uint32Array;
  readonly wait: Uint32Array | null;
  /** Position of each slice among the slices as they were sent; null if they are in that order. */
  readonly origin: Uint32Array | null;
  /** First slice of each row, and one entry past the last. */
  readonly off: Uint32Array;
  readonly rowLane: Uint32Array;
  /** Sum of the durations before each slice. */
  readonly sum: Float64Array;
  /** Index of the longest slice of every block of 8, of 64, ... */
  readonly pyramid: Uint32Array[];
  private readonly unions = new Map<number, { from: Float64Array; to: Float64Array; sum: Float64Array }>();

  constructor(columns: SliceColumns, plan?: LanePlan) {
    this.base = columns.base;
    this.end = columns.end;
    this.names = columns.names;
    this.colors = columns.colors;
    const lanes = plan?.lanes ?? columns.lanes;
    const places = columns.offsets ? null : assignRows(columns, lanes.length, plan);
    const rows = columns.rows ?? places!.rowsOfLane;
    this.lanes = [];
    let firstRow = 0;
    for (let lane = 0; lane < lanes.length; lane++) {
      this.lanes.push({ ...lanes[lane], firstRow, rows: rows[lane] });
      firstRow += rows[lane];
    }
    this.rowCount = firstRow;
    this.rowLane = new Uint32Array(firstRow);
    for (let lane = 0; lane < lanes.length; lane++) {
      const { firstRow: from, rows } = this.lanes[lane];
      this.rowLane.fill(lane, from, from + rows);
    }
    if (columns.offsets) {
      this.off = Uint32Array.from(columns.offsets);
      this.origin = null;
    } else {
      const { off, origin } = sortByRow(places!, this.lanes);
      this.off = off;
      this.origin = origin.length === columns.ts.length && origin.every((from, i) => from === i) ? null : origin;
    }
    const { origin } = this;
    this.count = origin?.length ?? columns.ts.length;
    const take = <T extends Moments | Uint16Array>(from: T): T => {
      if (!origin) return from;
      const to = new (from.constructor as new (n: number) => T)(origin.length);
      for (let i = 0; i < origin.length; i++) to[i] = from[origin[i]];
      return to;
    };
    this.ts = take(columns.ts);
    this.dur = take(columns.dur);
    this.name = take(columns.name);
    this.color = take(columns.color);
    this.row = take(columns.row);
    this.wait = columns.wait && take(columns.wait);
    const indexes = (!origin && columns.indexes) || indexesOf(this.dur);
    this.sum = indexes.sum;
    this.pyramid = indexes.pyramid;
  }

  recolor(colors: string[], color: Uint16Array): void {
    this.colors = colors;
    this.color = this.origin ? Uint16Array.from(this.origin, (from) => color[from]) : color;
  }

  laneOfSlice(index: number): number {
    return this.rowLane[this.rowOfSlice(index)];
  }

  rowOfSlice(index: number): number {
    let low = 0;
    let high = this.rowCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.off[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** First slice of [low, high) that starts at or after the moment. */
  lowerBound(moment: number, low: number, high: number): number {
    const { ts } = this;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ts[middle] < moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** As lowerBound, for an answer that is expected near `low`. */
  gallop(moment: number, low: number, high: number): number {
    const { ts } = this;
    let step = 1;
    let from = low;
    while (from + step < high && ts[from + step] < moment) {
      from += step;
      step *= 2;
    }
    return this.lowerBound(moment, from, Math.min(high, from + step + 1));
  }

  /** First slice of the row that ends after the moment. */
  firstVisible(row: number, moment: number): number {
    const low = this.off[row];
    const found = this.lowerBound(moment, low, this.off[row + 1]);
    return found > low && this.ts[found - 1] + this.dur[found - 1] > moment ? found - 1 : found;
  }

  /** The longest slice of [low, high); -1 if the range is empty. */
  longest(low: number, high: number): number {
    if (low >= high) return -1;
    const { dur, pyramid } = this;
    let best = low;
    let bestDuration = dur[low];
    let level = -1;
    let size = 1;
    let i = low;
    while (i < high) {
      while (level + 1 < pyramid.length && i % (size * FAN) === 0 && i + size * FAN <= high) {
        level++;
        size *= FAN;
      }
      while (level >= 0 && (i % size !== 0 || i + size > high)) {
        level--;
        size /= FAN;
      }
      const candidate = level < 0 ? i : pyramid[level][i / size];
      if (dur[candidate] > bestDuration) {
        best = candidate;
        bestDuration = dur[candidate];
      }
      i += size;
    }
    return best;
  }

  /** Calls back, in order, for every slice of [low, high) that lasts at least `least`. */
  eachLong(low: number, high: number, least: number, visit: (index: number) => void): void {
    const { dur, pyramid } = this;
    const descend = (level: number, block: number): void => {
      if (level < 0) {
        if (dur[block] >= least) visit(block);
        return;
      }
      if (dur[pyramid[level][block]] < least) return;
      const from = block * FAN;
      const limit = level === 0 ? this.count : pyramid[level - 1].length;
      for (let child = from; child < Math.min(from + FAN, limit); child++) descend(level - 1, child);
    };
    let i = low;
    while (i < high) {
      let level = -1;
      let size = 1;
      while (level + 1 < pyramid.length && i % (size * FAN) === 0 && i + size * FAN <= high) {
        level++;
        size *= FAN;
      }
      descend(level, i / size);
      i += size;
    }
  }

  /** Time of [start, end) that the row is busy. */
  busy(row: number, start: number, end: number): number {
    const { ts, dur, sum, off } = this;
    const first = this.firstVisible(row, start);
    const last = this.lowerBound(end, first, off[row + 1]);
    if (first >= last) return 0;
    const before = Math.max(0, start - ts[first]);
    const after = Math.max(0, ts[last - 1] + dur[last - 1] - end);
    return Math.max(0, sum[last] - sum[first] - before - after);
  }

  /** Time of [start, end) that any slice of the lane covers: what nests or overlaps counts once. */
  busyLane(lane: number, start: number, end: number): number {
    const { firstRow, rows } = this.lanes[lane];
    if (rows === 1) return this.busy(firstRow, start, end);
    const { from, to, sum } = this.unionOf(lane);
    const after = (moment: number) => {
      let low = 0;
      let high = from.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (from[middle] < moment) low = middle + 1;
        else high = middle;
      }
      // Covered time before the moment: whole intervals, less what the last one has beyond it.
      return low === 0 ? 0 : sum[low] - Math.max(0, to[low - 1] - moment);
    };
    return Math.max(0, after(end) - after(start));
  }

  /** Intervals that a lane's slices cover, made when they are first asked for. */
  private unionOf(lane: number): { from: Float64Array; to: Float64Array; sum: Float64Array } {
    const known = this.unions.get(lane);
    if (known) return known;
    const { firstRow, rows } = this.lanes[lane];
    const { ts, dur, off } = this;
    const low = off[firstRow];
    const order = Uint32Array.from({ length: off[firstRow + rows] - low }, (_, i) => low + i);
    order.sort((a, b) => ts[a] - ts[b]);
    const from: number[] = [];
    const to: number[] = [];
    for (const slice of order) {
      const last = to.length - 1;
      if (last >= 0 && ts[slice] <= to[last]) to[last] = Math.max(to[last], ts[slice] + dur[slice]);
      else {
        from.push(ts[slice]);
        to.push(ts[slice] + dur[slice]);
      }
    }
    const sum = new Float64Array(from.length + 1);
    for (let i = 0; i < from.length; i++) sum[i + 1] = sum[i] + to[i] - from[i];
    const union = { from: Float64Array.from(from), to: Float64Array.from(to), sum };
    this.unions.set(lane, union);
    return union;
  }

  /** The slice at a moment, or the longest within the tolerance around it; -1 if there is none. */
  pick(row: number, moment: number, tolerance: number): number {
    const high = this.off[row + 1];
    const at = this.firstVisible(row, moment);
    if (at < high && this.ts[at] <= moment && this.ts[at] + this.dur[at] > moment && this.dur[at] >= tolerance)
      return at;
    const first = this.firstVisible(row, moment - tolerance);
    return this.longest(first, this.lowerBound(moment + tolerance, first, high));
  }

  /** The slice that shows a row of a table, if it is drawn. */
  find(table: string, row: number, start?: number): number {
    for (const lane of this.lanes) {
      if (lane.table !== table) continue;
      for (let r = lane.firstRow; r < lane.firstRow + lane.rows; r++) {
        let low = this.off[r];
        let high = this.off[r + 1];
        if (start !== undefined) {
          low = this.lowerBound(start, low, high);
          high = this.lowerBound(start + 1, low, high);
        }
        for (let i = low; i < high; i++) if (this.row[i] === row) return i;
      }
    }
    return -1;
  }
}

export function indexesOf(dur: Moments): Indexes {
  const sum = new Float64Array(dur.length + 1);
  let total = 0;
  for (let i = 0; i < dur.length; i++) {
    total += dur[i];
    sum[i + 1] = total;
  }
  return { sum, pyramid: longestPyramid(dur) };
}

function longestPyramid(dur: Moments): Uint32Array[] {
  const levels: Uint32Array[] = [];
  let length = dur.length;
  let below: Uint32Array | null = null;
  while (length > FAN) {
    const size = Math.ceil(length / FAN);
    const level = new Uint32Array(size);
    for (let block = 0; block < size; block++) {
      const from = block * FAN;
      const to = Math.min(from + FAN, length);
      let best = below ? below[from] : from;
      for (let i = from + 1; i < to; i++) {
        const candidate = below ? below[i] : i;
        if (dur[candidate] > dur[best]) best = candidate;
      }
      level[block] = best;
    }
    levels.push(level);
    below = level;
    length = size;
  }
  return levels;
}

interface Places {
  /** Slices by lane and start, as positions in the columns. */
  order: Uint32Array;
  laneOf: Uint16Array;
  rowOf: Uint16Array;
  rowsOfLane: Uint32Array;
}

/**
 * Row of every slice within its lane: the first one that is free when the slice starts. For calls that nest this is the
 * depth of nesting. Without a plan the keys of the columns are the lanes, so that their order is the lanes' order.
 */
function assignRows(columns: SliceColumns, laneCount: number, plan?: LanePlan): Places {
  const { ts, dur } = columns;
  const key = columns.lane ?? new Uint16Array(ts.length);
  const laneOf = plan ? (i: number) => plan.laneOf[key[i]] : (i: number) => key[i];
  let order: Uint32Array;
  if (!plan) {
    order = new Uint32Array(ts.length);
    for (let i = 0; i < ts.length; i++) order[i] = i;
  } else {
    const kept: number[] = [];
    for (let i = 0; i < ts.length; i++) if (laneOf(i) >= 0) kept.push(i);
    kept.sort((a, b) => {
      const order = laneOf(a) - laneOf(b) || ts[a] - ts[b];
      // As the stream is sorted: what has no length before what starts with it, a call before the calls that it makes.
      return order || Number(dur[a] > 0) - Number(dur[b] > 0) || dur[b] - dur[a] || a - b;
    });
    order = Uint32Array.from(kept);
  }
  const places = {
    order,
    laneOf: Uint16Array.from(order, laneOf),
    rowOf: new Uint16Array(order.length),
    rowsOfLane: new Uint32Array(laneCount).fill(1),
  };
  let ends: number[] = [];
  let lastLane = -1;
  for (let i = 0; i < order.length; i++) {
    const at = order[i];
    const lane = places.laneOf[i];
    if (lane !== lastLane) {
      ends = [];
      lastLane = lane;
    }
    let row = 0;
    while (row < ends.length && ends[row] > ts[at]) row++;
    ends[row] = ts[at] + dur[at];
    places.rowOf[i] = row;
    if (row + 1 > places.rowsOfLane[lane]) places.rowsOfLane[lane] = row + 1;
  }
  return places;
}

/** A counting sort by row, which keeps the order by start within each row. */
function sortByRow({ order, laneOf, rowOf }: Places, lanes: readonly Lane[]) {
  const last = lanes[lanes.length - 1];
  const off = new Uint32Array((last ? last.firstRow + last.rows : 0) + 1);
  const rows = Uint32Array.from(rowOf, (row, i) => lanes[laneOf[i]].firstRow + row);
  for (const row of rows) off[row + 1]++;
  for (let row = 1; row < off.length; row++) off[row] += off[row - 1];
  const next = off.slice();
  const origin = new Uint32Array(order.length);
  for (let i = 0; i < order.length; i++) origin[next[rows[i]]++] = order[i];
  return { off, origin };
}
