// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { CounterColumns, SeriesInfo } from "../data/drawn";

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

export const COUNTER_COLUMNS = 256;
const MOST_TILES = 1000;

/** Pixels of counters by series, level (a power of two of time per column) and position; the least recently used go first. */
export class CounterTiles {
  private readonly tiles = new Map<string, HTMLCanvasElement>();

  clear(): void {
    this.tiles.clear();
  }

  get(series: number, level: number, index: number): HTMLCanvasElement | undefined {
    const key = `${series}:${level}:${index}`;
    const tile = this.tiles.get(key);
    if (tile) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
    }
    return tile;
  }

  /** `color`: ABGR. */
  build(series: Series, number: number, level: number, index: number, height: number, color: number) {
    const canvas = document.createElement("canvas");
    canvas.width = COUNTER_COLUMNS;
    canvas.height = height;
    const image = new ImageData(COUNTER_COLUMNS, height);
    const span = COUNTER_COLUMNS * 2 ** level;
    paintCounter(series, index * span, 2 ** level, height, color, new Uint32Array(image.data.buffer));
    canvas.getContext("2d")!.putImageData(image, 0, 0);
    this.tiles.set(`${number}:${level}:${index}`, canvas);
    if (this.tiles.size > MOST_TILES) this.tiles.delete(this.tiles.keys().next().value!);
    return canvas;
  }
}

/**
 * A filled curve: of each column the highest value, and the one that held when it began. Painted by pixels, because
 * paths of thousands of points take most of a frame where no graphics processor draws them.
 */
export function paintCounter(
  series: Series,
  start: number,
  q: number,
  height: number,
  color: number,
  pixels: Uint32Array,
): void {
  const range = series.maximum - series.minimum || 1;
  const tall = height - 4;
  const rowOf = (value: number) =>
    Math.max(0, Math.min(height - 1, Math.round(height - 1 - ((value - series.minimum) / range) * tall)));
  const line = ((255 << 24) | color) >>> 0;
  const fill = ((Math.round(255 * (series.info.style === "area" ? 0.45 : 0.22)) << 24) | color) >>> 0;
  let next = series.at(start);
  let before = rowOf(next < 0 ? 0 : series.value[next]);
  for (let x = 0; x < COUNTER_COLUMNS; x++) {
    const first = next;
    next = series.at(start + (x + 1) * q, first);
    const value =
      first < 0 && next < 0 ? 0 : Math.max(first < 0 ? 0 : series.value[first], series.most(first + 1, next + 1));
    const row = rowOf(value);
    const top = Math.min(row, before);
    const joint = Math.max(row, before);
    for (let y = top; y <= joint; y++) pixels[y * COUNTER_COLUMNS + x] = line;
    for (let y = joint + 1; y < height; y++) pixels[y * COUNTER_COLUMNS + x] = fill;
    // A drop is drawn in the column after it, a rise in its own.
    before = row;
  }
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
