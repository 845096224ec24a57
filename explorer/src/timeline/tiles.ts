// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { blend, type Palette } from "../colors";
import { TILE_COLUMNS } from "./frame";
import type { Slices } from "./slices";

export const TILE_ROWS = 32;
/** Slices at least this many pixels wide (at a tile's resolution) are drawn as rectangles and left out of tiles. */
export const VECTOR_PIXELS = 3;
const LEAST_ALPHA = 0.35;

export interface Tile {
  pixels: Uint32Array;
  used: number;
}

/**
 * Pixels of one tile: for each row and column the colour of the longest slice there, as opaque as the share of the
 * column's time that is busy over the palette's background. 0 where nothing runs. `q` is the time of a column, `start` that
 * of the first one.
 */
export function paintTile(
  slices: Slices,
  palette: Palette,
  firstRow: number,
  start: number,
  q: number,
  pixels: Uint32Array,
): void {
  pixels.fill(0);
  const { ts, dur, sum, off, color } = slices;
  const end = start + TILE_COLUMNS * q;
  const vector = VECTOR_PIXELS * q;
  const rows = Math.min(TILE_ROWS, slices.rowCount - firstRow);
  for (let r = 0; r < rows; r++) {
    const row = firstRow + r;
    const last = off[row + 1];
    let i = slices.firstVisible(row, start);
    const line = r * TILE_COLUMNS;
    while (i < last && ts[i] < end) {
      const column = Math.max(0, Math.floor((ts[i] - start) / q));
      const columnEnd = start + (column + 1) * q;
      const next = Math.max(i + 1, slices.gallop(columnEnd, i, last));
      const tail = next - 1;
      const tailIsVector = dur[tail] >= vector;
      const high = tailIsVector ? tail : next;
      if (high > i) {
        const longest = high - i > 12 ? slices.longest(i, high) : longestOfFew(dur, i, high);
        const tailEnd = ts[high - 1] + dur[high - 1];
        const covered = sum[high] - sum[i] - Math.max(0, tailEnd - columnEnd);
        pixels[line + column] = shade(palette, color[longest], covered / q);
        // What reaches into the next columns; those that hold something longer paint over it.
        if (tailEnd > columnEnd) {
          const until = Math.min(TILE_COLUMNS - 1, Math.floor((tailEnd - start) / q));
          for (let c = column + 1; c <= until; c++) {
            const share = Math.min(1, (tailEnd - (start + c * q)) / q);
            if (share > 0.05) pixels[line + c] = shade(palette, color[high - 1], share);
          }
        }
      }
      i = next;
    }
  }
}

function longestOfFew(dur: ArrayLike<number>, low: number, high: number): number {
  let best = low;
  for (let i = low + 1; i < high; i++) if (dur[i] > dur[best]) best = i;
  return best;
}

export function shade(palette: Palette, color: number, share: number): number {
  const pixel = palette.pixels[color];
  // A colour that is faded already (not highlighted) stays faded.
  return blend(pixel, (Math.max(LEAST_ALPHA, Math.min(1, share)) * (pixel >>> 24)) / 255, palette.background);
}

/** Tiles by row group, level and position; the least recently used ones go first. */
export class TileCache {
  private tiles = new Map<string, Tile>();
  private clock = 0;
  private readonly limit: number;

  constructor(limit = 2000) {
    this.limit = limit;
  }

  clear(): void {
    this.tiles.clear();
  }

  get(group: number, level: number, index: number): Tile | undefined {
    const tile = this.tiles.get(`${group}:${level}:${index}`);
    if (tile) tile.used = ++this.clock;
    return tile;
  }

  build(slices: Slices, palette: Palette, group: number, level: number, index: number): Tile {
    const q = 2 ** level;
    const tile = { pixels: new Uint32Array(TILE_COLUMNS * TILE_ROWS), used: ++this.clock };
    paintTile(slices, palette, group * TILE_ROWS, index * TILE_COLUMNS * q, q, tile.pixels);
    this.tiles.set(`${group}:${level}:${index}`, tile);
    if (this.tiles.size > this.limit) this.evict();
    return tile;
  }

  private evict(): void {
    const oldest = [...this.tiles.entries()].sort((a, b) => a[1].used - b[1].used);
    for (const [key] of oldest.slice(0, this.limit >> 2)) this.tiles.delete(key);
  }
}
