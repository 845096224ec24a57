// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Palette } from "../colors";
import type { OverviewColumns } from "../data/drawn";
import type { Lane } from "./slices";
import { shade } from "./tiles";

/** A profile by columns of time, painted until its slices are there: all rows, none of the single events. */
export class Overview {
  readonly lanes: Lane[] = [];
  readonly end: number;
  readonly colors: string[];
  private readonly columns: OverviewColumns;

  constructor(columns: OverviewColumns) {
    this.columns = columns;
    this.end = columns.end;
    this.colors = columns.colors;
    let firstRow = 0;
    columns.lanes.forEach((lane, index) => {
      this.lanes.push({ ...lane, firstRow, rows: columns.rows[index] });
      firstRow += columns.rows[index];
    });
  }

  /** The row into a line of pixels; `start` is the moment of the first one. */
  paint(line: Uint32Array, palette: Palette, row: number, start: number, nsPerPixel: number): void {
    const { levels, color, share } = this.columns;
    // The level that tiles of slices would have, or the nearest one.
    const wanted = Math.ceil(Math.log2(nsPerPixel) - 1e-9);
    const { level, columns, begin } = levels[Math.max(0, Math.min(levels.length - 1, wanted - levels[0].level))];
    const q = 2 ** level;
    const cells = begin + row * columns;
    for (let x = 0; x < line.length; x++) {
      const column = Math.floor((start + (x + 0.5) * nsPerPixel) / q);
      if (column < 0) continue;
      if (column >= columns) break;
      const busy = share[cells + column];
      if (busy) line[x] = shade(palette, color[cells + column], busy / 255);
    }
  }
}
