// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { blend } from "../colors";

/** Tiles have as many columns as a byte has values, so that a column is a byte. */
export const TILE_COLUMNS = 256;

/** Pixels [x0, x1) of a frame show a tile's columns: pixel x the one at `offset + (x + 0.5) * ratio`. */
export interface Place {
  offset: number;
  ratio: number;
  x0: number;
  x1: number;
}

/**
 * The pixels of one frame of a timeline, from top to bottom: bands of one colour, rows of slices (a line of pixels,
 * copied down as far as the row is high) and curves. What nothing covers shows the ground with its grid. Colours are
 * opaque ABGR, places are pixels of the canvas.
 */
export class Frame {
  width = 0;
  height = 0;
  /** The row that is being painted. */
  line = new Uint32Array();
  private image: ImageData | null = null;
  private pixels = new Uint32Array();
  private ground = new Uint32Array();
  private middle = new Uint32Array();
  /** Column of the tile at hand that each pixel shows. */
  private columns = new Uint8Array();
  private grid: number[] = [];
  private background = 0;
  private done = 0;
  private curveTop = 0;
  private curveRows: [number, number] = [0, 0];
  private curveColors = new Uint32Array(3);

  begin(width: number, height: number, background: number): void {
    if (!this.image || this.width !== width || this.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.width = width;
      this.height = height;
      this.line = new Uint32Array(width);
      this.ground = new Uint32Array(width);
      this.middle = new Uint32Array(width);
      this.columns = new Uint8Array(width);
    }
    this.background = background;
    this.ground.fill(background);
    this.grid = [];
    this.done = 0;
  }

  /** A line of the grid. */
  mark(x: number, color: number): void {
    if (x < 0 || x >= this.width) return;
    this.ground[x] = color;
    this.grid.push(x);
  }

  band(top: number, bottom: number, color: number): void {
    const [from, to] = this.reach(top, bottom);
    this.pixels.fill(color, from * this.width, to * this.width);
  }

  startLine(): void {
    this.line.set(this.ground);
  }

  fill(x0: number, x1: number, color: number): void {
    this.line.fill(color, Math.max(0, x0), Math.max(0, x1));
  }

  /** A second version of the line for the rows in its middle, from what the line holds now. */
  startMiddle(): void {
    this.middle.set(this.line);
  }

  fillMiddle(x0: number, x1: number, color: number): void {
    this.middle.fill(color, Math.max(0, x0), Math.max(0, x1));
  }

  /** A row of a tile into the line, except where the tile is empty. */
  stretch(tile: Uint32Array, from: number, { offset, ratio, x0, x1 }: Place): void {
    const { line } = this;
    for (let x = x0, at = offset + (x0 + 0.5) * ratio; x < x1; x++, at += ratio) {
      const color = tile[from + ((at | 0) & 0xff)];
      if (color !== 0) line[x] = color;
    }
  }

  copyLine(top: number, bottom: number): void {
    const [from, to] = this.reach(top, bottom);
    for (let y = from; y < to; y++) this.pixels.set(this.line, y * this.width);
  }

  /** Over rows that copyLine has written. */
  copyMiddle(top: number, bottom: number): void {
    const to = Math.min(this.height, Math.round(bottom));
    for (let y = Math.max(0, Math.round(top)); y < to; y++) this.pixels.set(this.middle, y * this.width);
  }

  /** A curve and what lies under it, which covers the ground by `share`. */
  startCurve(top: number, height: number, color: number, share: number): void {
    this.curveTop = Math.round(top);
    this.curveRows = this.reach(this.curveTop, this.curveTop + height);
    this.curveColors = Uint32Array.of(this.background, color, blend(color, share, this.background));
    for (let y = this.curveRows[0]; y < this.curveRows[1]; y++) this.pixels.set(this.ground, y * this.width);
  }

  /** `tile`: of each row and column whether the ground (0), the curve (1) or what is under it (2) is there. */
  curve(tile: Uint8Array, { offset, ratio, x0, x1 }: Place): void {
    const { columns, pixels, curveColors } = this;
    for (let x = x0, at = offset + (x0 + 0.5) * ratio; x < x1; x++, at += ratio) columns[x] = at | 0;
    const [from, to] = this.curveRows;
    for (let y = from; y < to; y++) {
      const line = y * this.width;
      const row = (y - this.curveTop) * TILE_COLUMNS;
      for (let x = x0; x < x1; x++) pixels[line + x] = curveColors[tile[row + columns[x]]];
      for (const x of this.grid)
        if (x >= x0 && x < x1 && tile[row + columns[x]] === 0) pixels[line + x] = this.ground[x];
    }
  }

  put(context: CanvasRenderingContext2D): void {
    this.reach(this.height, this.height);
    context.putImageData(this.image!, 0, 0);
  }

  /** Rows [top, bottom) as far as they are in the frame; the ones above that nothing has covered become ground. */
  private reach(top: number, bottom: number): [number, number] {
    const from = Math.max(this.done, Math.min(this.height, Math.round(top)));
    const to = Math.max(from, Math.min(this.height, Math.round(bottom)));
    for (let y = this.done; y < from; y++) this.pixels.set(this.ground, y * this.width);
    this.done = to;
    return [from, to];
  }
}
