// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Palette, Theme } from "../colors";
import { byUnit, moment, roundStep } from "../format";
import { COUNTER_COLUMNS, type CounterTiles, type Series } from "./counters";
import type { Slices } from "./slices";
import { TILE_COLUMNS, TILE_ROWS, type TileCache, VECTOR_PIXELS } from "./tiles";
import type { Track } from "./tracks";

const BUILD_BUDGET_MS = 8;
const LABEL_PIXELS = 42;

export interface Camera {
  /** Moment at the left edge, in ns from the start of the profile. */
  start: number;
  nsPerPixel: number;
  scroll: number;
}

export interface Scene {
  slices: Slices | null;
  series: readonly Series[];
  tracks: readonly Track[];
  palette: Palette;
  theme: Theme;
  cache: TileCache;
  counters: CounterTiles;
}

function visibleTracks(tracks: readonly Track[], top: number, bottom: number): readonly Track[] {
  let low = 0;
  let high = tracks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tracks[middle].y + tracks[middle].height < top) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < tracks.length && tracks[end].y < bottom) end++;
  return tracks.slice(low, end);
}

/** Draws everything that does not follow the pointer. True if tiles are still missing, so that another frame is due. */
export function drawScene(
  context: CanvasRenderingContext2D,
  scene: Scene,
  camera: Camera,
  width: number,
  height: number,
): boolean {
  const { theme } = scene;
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, height);
  drawGrid(context, theme, camera, width, height);
  const shown = visibleTracks(scene.tracks, camera.scroll, camera.scroll + height);
  const deadline = performance.now() + BUILD_BUDGET_MS;
  let missing = false;
  context.imageSmoothingEnabled = false;
  for (const track of shown) {
    const y = Math.round(track.y - camera.scroll);
    if (track.kind === "header") {
      context.fillStyle = theme.background;
      context.fillRect(0, y, width, track.height);
    } else if (track.kind === "counter") {
      missing = drawCounter(context, scene, track.series, camera, y, track.height, width, deadline) || missing;
    } else if (scene.slices) {
      missing = drawTiles(context, scene, camera, track, y, width, deadline) || missing;
    }
  }
  if (scene.slices) drawRectangles(context, scene, camera, shown, width, height);
  return missing;
}

export function gridStep(nsPerPixel: number): number {
  return roundStep(nsPerPixel * 110);
}

function drawGrid(
  context: CanvasRenderingContext2D,
  theme: Theme,
  camera: Camera,
  width: number,
  height: number,
): void {
  const step = gridStep(camera.nsPerPixel);
  context.fillStyle = theme.line;
  for (let t = Math.ceil(camera.start / step) * step; ; t += step) {
    const x = Math.round((t - camera.start) / camera.nsPerPixel);
    if (x > width) break;
    context.fillRect(x, 0, 1, height);
  }
}

export function drawAxis(
  context: CanvasRenderingContext2D,
  theme: Theme,
  camera: Camera,
  end: number,
  width: number,
  height: number,
): void {
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  const step = gridStep(camera.nsPerPixel);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let t = Math.ceil(camera.start / step) * step; ; t += step) {
    const x = Math.round((t - camera.start) / camera.nsPerPixel);
    if (x > width) break;
    context.fillStyle = theme.line;
    context.fillRect(x, height - 8, 1, 8);
    context.fillStyle = theme.text;
    context.fillText(moment(Math.round(t / step) * step, step), x + 4, height / 2 + 2);
  }
  // Which part of the whole is in view.
  const whole = Math.max(end, 1);
  const from = Math.max(0, Math.min(1, camera.start / whole));
  const to = Math.max(0, Math.min(1, (camera.start + width * camera.nsPerPixel) / whole));
  context.fillStyle = theme.line;
  context.fillRect(0, 0, width, 3);
  context.fillStyle = theme.accent;
  context.fillRect(from * width, 0, Math.max(3, (to - from) * width), 3);
}

function drawTiles(
  context: CanvasRenderingContext2D,
  scene: Scene,
  camera: Camera,
  track: Extract<Track, { kind: "lane" }>,
  y: number,
  width: number,
  deadline: number,
): boolean {
  const slices = scene.slices!;
  const { firstRow, rows } = slices.lanes[track.lane];
  const level = Math.ceil(Math.log2(camera.nsPerPixel) - 1e-9);
  const end = camera.start + width * camera.nsPerPixel;
  let missing = false;
  for (let row = firstRow; row < firstRow + rows; ) {
    const group = Math.floor(row / TILE_ROWS);
    const until = Math.min(firstRow + rows, (group + 1) * TILE_ROWS);
    const top = y + (row - firstRow) * track.rowHeight;
    const tall = (until - row) * track.rowHeight;
    const span = TILE_COLUMNS * 2 ** level;
    for (let index = Math.floor(camera.start / span); index * span < end; index++) {
      if (index < 0 || index * span > slices.end) continue;
      let tile = scene.cache.get(group, level, index);
      let at = index;
      let up = 0;
      if (!tile) {
        if (performance.now() < deadline) {
          tile = scene.cache.build(slices, scene.palette.pixels, group, level, index);
        } else {
          missing = true;
          while (!tile && up < 3) {
            up++;
            at = Math.floor(at / 2);
            tile = scene.cache.get(group, level + up, at);
          }
          if (!tile) continue;
        }
      }
      const x0 = Math.round((index * span - camera.start) / camera.nsPerPixel);
      const x1 = Math.round(((index + 1) * span - camera.start) / camera.nsPerPixel);
      // A tile of a coarser level holds this one in a part of its columns.
      const columns = TILE_COLUMNS / 2 ** up;
      const sx = (index - at * 2 ** up) * columns;
      context.drawImage(tile.canvas, sx, row - group * TILE_ROWS, columns, until - row, x0, top, x1 - x0, tall);
    }
    row = until;
  }
  return missing;
}

interface Batch {
  rectangles: number[];
  labels: number[];
}

/** Slices that are wide enough for a rectangle of their own, by colour so that the style changes once per colour. */
function drawRectangles(
  context: CanvasRenderingContext2D,
  scene: Scene,
  camera: Camera,
  shown: readonly Track[],
  width: number,
  height: number,
): void {
  const slices = scene.slices!;
  const level = Math.ceil(Math.log2(camera.nsPerPixel) - 1e-9);
  const least = VECTOR_PIXELS * 2 ** level;
  const end = camera.start + width * camera.nsPerPixel;
  const scale = 1 / camera.nsPerPixel;
  const batches = new Map<number, Batch>();
  const waits: number[] = [];
  for (const track of shown) {
    if (track.kind !== "lane") continue;
    const { firstRow, rows } = slices.lanes[track.lane];
    const tall = Math.max(1, track.rowHeight - (track.rowHeight > 4 ? 1 : 0));
    for (let r = 0; r < rows; r++) {
      const y = track.y - camera.scroll + r * track.rowHeight;
      if (y + tall < 0 || y > height) continue;
      const row = firstRow + r;
      const first = slices.firstVisible(row, camera.start);
      const last = slices.lowerBound(end, first, slices.off[row + 1]);
      slices.eachLong(first, last, least, (index) => {
        const x0 = Math.max(-4, (slices.ts[index] - camera.start) * scale);
        const x1 = Math.min(width + 4, (slices.ts[index] + slices.dur[index] - camera.start) * scale);
        const color = slices.color[index];
        let batch = batches.get(color);
        if (!batch) {
          batch = { rectangles: [], labels: [] };
          batches.set(color, batch);
        }
        const wide = Math.max(1, x1 - x0 - (x1 - x0 > 4 ? 0.75 : 0));
        batch.rectangles.push(x0, y, wide, tall);
        if (wide > LABEL_PIXELS && track.rowHeight >= 12) batch.labels.push(index, x0, y, wide);
        if (slices.wait && slices.wait[index] > least) {
          waits.push(
            (slices.ts[index] - slices.wait[index] - camera.start) * scale,
            y + tall / 2 - 1,
            slices.wait[index] * scale,
          );
        }
      });
    }
  }
  if (waits.length) {
    context.fillStyle = scene.theme.muted;
    for (let i = 0; i < waits.length; i += 3) context.fillRect(waits[i], waits[i + 1], waits[i + 2], 2);
  }
  for (const [color, { rectangles }] of batches) {
    context.fillStyle = scene.palette.css[color];
    context.beginPath();
    for (let i = 0; i < rectangles.length; i += 4)
      context.rect(rectangles[i], rectangles[i + 1], rectangles[i + 2], rectangles[i + 3]);
    context.fill();
  }
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const [color, { labels }] of batches) {
    context.fillStyle = scene.palette.text[color];
    for (let i = 0; i < labels.length; i += 4) {
      const name = slices.names[slices.name[labels[i]]];
      const x = Math.max(0, labels[i + 1]);
      const text = fitted(context, name, labels[i + 1] + labels[i + 3] - x - 6);
      if (text) context.fillText(text, x + 3, labels[i + 2] + ROW_MIDDLE);
    }
  }
}

const ROW_MIDDLE = 9;
const widths = new Map<string, number>();

/** As much of the name as fits; measuring text is slow, so each name is measured once. */
function fitted(context: CanvasRenderingContext2D, name: string, room: number): string {
  let width = widths.get(name);
  if (width === undefined) {
    width = context.measureText(name).width;
    widths.set(name, width);
  }
  if (width <= room) return name;
  const count = Math.floor((name.length * (room - 9)) / width);
  return count < 2 ? "" : `${name.slice(0, count)}…`;
}

function drawCounter(
  context: CanvasRenderingContext2D,
  scene: Scene,
  number: number,
  camera: Camera,
  y: number,
  height: number,
  width: number,
  deadline: number,
): boolean {
  const { theme } = scene;
  const series = scene.series[number];
  const level = Math.ceil(Math.log2(camera.nsPerPixel) - 1e-9);
  const span = COUNTER_COLUMNS * 2 ** level;
  const end = camera.start + width * camera.nsPerPixel;
  let missing = false;
  for (let index = Math.floor(camera.start / span); index * span < end; index++) {
    let tile = scene.counters.get(number, level, index);
    let at = index;
    let up = 0;
    if (!tile && performance.now() < deadline) {
      tile = scene.counters.build(series, number, level, index, height, scene.palette.counter);
    } else if (!tile) {
      missing = true;
      while (!tile && up < 3) {
        up++;
        at = Math.floor(at / 2);
        tile = scene.counters.get(number, level + up, at);
      }
      if (!tile) continue;
    }
    const x0 = Math.round((index * span - camera.start) / camera.nsPerPixel);
    const x1 = Math.round(((index + 1) * span - camera.start) / camera.nsPerPixel);
    const columns = COUNTER_COLUMNS / 2 ** up;
    context.drawImage(tile, (index - at * 2 ** up) * columns, 0, columns, height, x0, y, x1 - x0, height);
  }
  context.fillStyle = theme.muted;
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "top";
  context.textAlign = "right";
  const most = byUnit(series.maximum, series.info.unit);
  context.strokeStyle = theme.panel;
  context.lineWidth = 3;
  context.strokeText(most, width - 4, y + 2);
  context.fillText(most, width - 4, y + 2);
  context.textAlign = "left";
  return missing;
}

/** Corners of a slice on the screen; null if its track is not shown. */
export function rectangleOf(
  scene: Scene,
  camera: Camera,
  index: number,
): { x: number; y: number; width: number; height: number } | null {
  const slices = scene.slices;
  if (!slices || index < 0) return null;
  const row = slices.rowOfSlice(index);
  const lane = slices.rowLane[row];
  const track = scene.tracks.find((entry) => entry.kind === "lane" && entry.lane === lane);
  if (track?.kind !== "lane") return null;
  return {
    x: (slices.ts[index] - camera.start) / camera.nsPerPixel,
    y: track.y - camera.scroll + (row - slices.lanes[lane].firstRow) * track.rowHeight,
    width: Math.max(2, slices.dur[index] / camera.nsPerPixel),
    height: track.rowHeight,
  };
}
