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

  /** Last sample at or before the moment; -1 before the first. */
  at(moment: number): number {
    let low = 0;
    let high = this.ts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.ts[middle] <= moment) low = middle + 1;
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
