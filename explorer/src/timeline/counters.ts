// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { CounterColumns, SeriesInfo } from "../data/drawn";
import { TILE_COLUMNS } from "./frame";

const BLOCK = 64;

/** Samples of one counter, with the extremes of every 64 of them. */
export class Series {
  readonly info: SeriesInfo;
  readonly ts: Float64Array;
  readonly value: Float64Array;
  readonly maximum: number;
  readonly minimum: number;
  private readonly high: Float64Array;

  constructor(info: SeriesInfo, ts: Float64Array, value: Float64Array) {
    this.info = info;
    this.ts = ts;
    this.value = value;
    const blocks = Math.ceil(ts.length / BLOCK);
    this.high = new Float64Array(blocks);
    let most = 0;
    let least = 0;
    for (let block = 0; block < blocks; block++) {
      let top = Number.NEGATIVE_INFINITY;
      for (let i = block * BLOCK; i < Math.min(ts.length, (block + 1) * BLOCK); i++) {
        top = Math.max(top, value[i]);
        least = Math.min(least, value[i]);
      }
      this.high[block] = top;
      most = Math.max(most, top);
    }
    this.maximum = info.max ?? (most > 0 ? most : 1);
    this.minimum = least;
  }

  /** Last sample at or before the moment; -1 before the first. `from`: such a sample of an earlier moment, if known. */
  at(moment: number, from = -1): number {
    const { ts } = this;
    let low = from + 1;
    let high = ts.length;
    if (from >= 0) {
      // The next pixel's sample is near: steps that double find a small range to search.
      let step = 1;
      while (low < high && ts[low] <= moment) {
        low += step;
        step *= 2;
      }
      high = Math.min(low, high);
      low = Math.max(from + 1, low - (step >> 1));
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ts[middle] <= moment) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Largest value of the samples [low, high). */
  most(low: number, high: number): number {
    let result = Number.NEGATIVE_INFINITY;
    let i = low;
    while (i < high) {
      if (i % BLOCK === 0 && i + BLOCK <= high) {
        result = Math.max(result, this.high[i / BLOCK]);
        i += BLOCK;
      } else {
        result = Math.max(result, this.value[i++]);
      }
    }
    return result;
  }
}

const MOST_TILES = 1000;

/** Curves of counters by series, level (a power of two of time per column), position and height; the oldest go first. */
export class CounterTiles {
  private readonly tiles = new Map<string, Uint8Array>();

  clear(): void {
    this.tiles.clear();
  }

  get(series: number, level: number, index: number, height: number): Uint8Array | undefined {
    const key = `${series}:${level}:${index}:${height}`;
    const tile = this.tiles.get(key);
    if (tile) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
    }
    return tile;
  }

  build(series: Series, number: number, level: number, index: number, height: number): Uint8Array {
    const span = TILE_COLUMNS * 2 ** level;
    const tile = curveOf(series, index * span, 2 ** level, height);
    this.tiles.set(`${number}:${level}:${index}:${height}`, tile);
    if (this.tiles.size > MOST_TILES) this.tiles.delete(this.tiles.keys().next().value!);
    return tile;
  }
}

/**
 * A curve by rows and columns: 0 above it, 1 on it, 2 under it. It goes through each column's highest value, from where it
 * was in the column before.
 */
export function curveOf(series: Series, start: number, q: number, height: number): Uint8Array {
  const cells = new Uint8Array(height * TILE_COLUMNS);
  const range = series.maximum - series.minimum || 1;
  const tall = height - 4;
  const rowOf = (value: number) =>
    Math.max(0, Math.min(height - 1, Math.round(height - 1 - ((value - series.minimum) / range) * tall)));
  let next = series.at(start);
  let before = rowOf(next < 0 ? 0 : series.value[next]);
  for (let x = 0; x < TILE_COLUMNS; x++) {
    const first = next;
    next = series.at(start + (x + 1) * q, first);
    const value =
      first < 0 && next < 0 ? 0 : Math.max(first < 0 ? 0 : series.value[first], series.most(first + 1, next + 1));
    const row = rowOf(value);
    const top = Math.min(row, before);
    const joint = Math.max(row, before);
    for (let y = top; y < height; y++) cells[y * TILE_COLUMNS + x] = y <= joint ? 1 : 2;
    // A drop is drawn in the column after it, a rise in its own.
    before = row;
  }
  return cells;
}

export function seriesOf(columns: CounterColumns): Series[] {
  const result: Series[] = [];
  let from = 0;
  for (let number = 0; number < columns.series.length; number++) {
    let to = from;
    while (to < columns.number.length && columns.number[to] === number) to++;
    result.push(new Series(columns.series[number], columns.ts.subarray(from, to), columns.value.subarray(from, to)));
    from = to;
  }
  return result;
}
