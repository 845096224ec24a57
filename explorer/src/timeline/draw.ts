// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { colorOf, type Palette, type Theme } from "../colors";
import { byUnit, moment, roundStep } from "../format";
import type { CounterTiles, Series } from "./counters";
import { type Frame, type Place, TILE_COLUMNS } from "./frame";
import type { Overview } from "./overview";
import type { Slices } from "./slices";
import { TILE_ROWS, type TileCache, VECTOR_PIXELS } from "./tiles";
import type { Track } from "./tracks";

/** For new tiles of a frame; and of the first frame, which nobody is waiting to see move. */
export const BUILD_BUDGET_MS = 8;
export const FIRST_BUDGET_MS = 200;
const LABEL_PIXELS = 42;

export interface Camera {
  /** Moment at the left edge, in ns from the start of the profile. */
  start: number;
  nsPerPixel: number;
  scroll: number;
}

export interface Scene {
  slices: Slices | null;
  /** What is drawn until the slices are there. */
  overview: Overview | null;
  series: readonly Series[];
  tracks: readonly Track[];
  palette: Palette;
  theme: Theme;
  cache: TileCache;
  counters: CounterTiles;
}

/** Time for new tiles within a frame. What else the frame takes does not count, so that every frame makes some. */
class Budget {
  private left: number;

  constructor(milliseconds: number) {
    this.left = milliseconds;
  }

  make<T>(build: () => T): T | undefined {
    if (this.left <= 0) return undefined;
    const since = performance.now();
    const made = build();
    this.left -= performance.now() - since;
    return made;
  }
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

/**
 * Draws everything that does not follow the pointer. True if tiles are still missing, so that another frame is due.
 * All but the text is written as pixels: where no graphics processor draws, filling and stretching through the canvas
 * takes several times as long as writing each row of pixels once and copying it down.
 */
export function drawScene(
  context: CanvasRenderingContext2D,
  frame: Frame,
  scene: Scene,
  camera: Camera,
  scale: number,
  focused: boolean,
  milliseconds: number,
): boolean {
  const { theme } = scene;
  const { width, height } = context.canvas;
  frame.begin(width, height, scene.palette.background);
  const view = { ...camera, nsPerPixel: camera.nsPerPixel / scale };
  forGrid(camera, width / scale, (_, x) => frame.mark(Math.round(x * scale), colorOf(theme.line)));
  const shown = visibleTracks(scene.tracks, camera.scroll, camera.scroll + height / scale);
  const budget = new Budget(milliseconds);
  const groups = new Map<number, ReturnType<typeof placeTiles>>();
  const labels: Label[] = [];
  const header = colorOf(theme.background);
  let missing = false;
  for (const track of shown) {
    const top = (track.y - camera.scroll) * scale;
    const bottom = top + track.height * scale;
    if (track.kind === "header") frame.band(top, bottom, header);
    else if (track.kind === "counter")
      missing = drawCounter(frame, scene, track.series, view, top, bottom, budget) || missing;
    else missing = drawLane(frame, scene, view, track, top, scale, budget, groups, labels) || missing;
  }
  frame.put(context);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  drawLabels(context, scene, labels, scale);
  drawMaxima(context, scene, camera, shown, width / scale);
  if (focused) {
    // An outline of the element would be a layer of its own over the canvas, drawn anew with every frame.
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(1, 1, width / scale - 2, height / scale - 2);
  }
  return missing;
}

export function gridStep(nsPerPixel: number): number {
  return roundStep(nsPerPixel * 110);
}

/** Moments of the grid and their places in CSS pixels. */
function forGrid(camera: Camera, width: number, visit: (moment: number, x: number) => void): void {
  const step = gridStep(camera.nsPerPixel);
  for (let t = Math.ceil(camera.start / step) * step; ; t += step) {
    const x = Math.round((t - camera.start) / camera.nsPerPixel);
    if (x > width) break;
    visit(t, x);
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
  forGrid(camera, width, (t, x) => {
    context.fillStyle = theme.line;
    context.fillRect(x, height - 8, 1, 8);
    context.fillStyle = theme.text;
    context.fillText(moment(Math.round(t / step) * step, step), x + 4, height / 2 + 2);
  });
  // Which part of the whole is in view.
  const whole = Math.max(end, 1);
  const from = Math.max(0, Math.min(1, camera.start / whole));
  const to = Math.max(0, Math.min(1, (camera.start + width * camera.nsPerPixel) / whole));
  context.fillStyle = theme.line;
  context.fillRect(0, 0, width, 3);
  context.fillStyle = theme.accent;
  context.fillRect(from * width, 0, Math.max(3, (to - from) * width), 3);
}

interface Label {
  slice: number;
  x: number;
  y: number;
  width: number;
}

/** What a lane is painted from: its slices, or while these are on their way what the overview says of each column. */
function drawLane(
  frame: Frame,
  scene: Scene,
  camera: Camera,
  track: Extract<Track, { kind: "lane" }>,
  y: number,
  scale: number,
  budget: Budget,
  groups: Map<number, ReturnType<typeof placeTiles>>,
  labels: Label[],
): boolean {
  const source = scene.slices ?? scene.overview;
  if (!source) return false;
  const { firstRow, rows } = source.lanes[track.lane];
  const tall = track.rowHeight * scale;
  const gap = track.rowHeight > 4 ? scale : 0;
  let missing = false;
  for (let r = 0; r < rows; r++) {
    const top = y + r * tall;
    if (top + tall < 0 || top > frame.height) continue;
    frame.startLine();
    const row = firstRow + r;
    if (!scene.slices) {
      scene.overview!.paint(frame.line, scene.palette, row, camera.start, camera.nsPerPixel);
      frame.copyLine(top, top + tall - gap);
      continue;
    }
    const group = Math.floor(row / TILE_ROWS);
    let placed = groups.get(group);
    if (!placed) {
      placed = placeTiles(frame, scene, scene.slices, camera, group, budget);
      groups.set(group, placed);
    }
    missing = placed.missing || missing;
    for (const tile of placed.tiles) frame.stretch(tile.pixels, (row - group * TILE_ROWS) * TILE_COLUMNS, tile);
    const hasWaits = paintLong(frame, scene, scene.slices, camera, row, top, track.rowHeight >= 12 ? labels : null);
    frame.copyLine(top, top + tall - gap);
    if (hasWaits) frame.copyMiddle(top + (tall - gap) / 2 - scale, top + (tall - gap) / 2 + scale);
  }
  return missing;
}

interface PlacedTile extends Place {
  pixels: Uint32Array;
}

/** The tiles of 32 rows that are in view. */
function placeTiles(
  frame: Frame,
  scene: Scene,
  slices: Slices,
  camera: Camera,
  group: number,
  budget: Budget,
): { tiles: PlacedTile[]; missing: boolean } {
  const { start, nsPerPixel } = camera;
  const level = levelOf(nsPerPixel);
  const end = Math.min(start + frame.width * nsPerPixel, slices.end + 1);
  const span = TILE_COLUMNS * 2 ** level;
  const tiles: PlacedTile[] = [];
  let missing = false;
  for (let index = Math.max(0, Math.floor(start / span)); index * span < end; index++) {
    let tile = scene.cache.get(group, level, index);
    let at = index;
    let up = 0;
    if (!tile) {
      tile = budget.make(() => scene.cache.build(slices, scene.palette, group, level, index));
      if (!tile) {
        missing = true;
        while (!tile && up < 3) {
          up++;
          at = Math.floor(at / 2);
          tile = scene.cache.get(group, level + up, at);
        }
        if (!tile) continue;
      }
    }
    const q = 2 ** (level + up);
    tiles.push({
      pixels: tile.pixels,
      offset: (start - at * TILE_COLUMNS * q) / q,
      ratio: nsPerPixel / q,
      x0: Math.max(0, firstPixel((index * span - start) / nsPerPixel)),
      x1: Math.min(frame.width, firstPixel(((index + 1) * span - start) / nsPerPixel)),
    });
  }
  return { tiles, missing };
}

/** Slices that are wide enough for a rectangle of their own. True if one of them waited visibly before its start. */
function paintLong(
  frame: Frame,
  scene: Scene,
  slices: Slices,
  camera: Camera,
  row: number,
  top: number,
  labels: Label[] | null,
): boolean {
  const { start, nsPerPixel } = camera;
  const scale = 1 / nsPerPixel;
  const least = VECTOR_PIXELS * 2 ** levelOf(nsPerPixel);
  const first = slices.firstVisible(row, start);
  const last = slices.lowerBound(start + frame.width * nsPerPixel, first, slices.off[row + 1]);
  const found: number[] = [];
  let hasWaits = false;
  slices.eachLong(first, last, least, (index) => {
    found.push(index);
    if (slices.wait && slices.wait[index] > least) hasWaits = true;
  });
  if (hasWaits) {
    frame.startMiddle();
    const color = colorOf(scene.theme.muted);
    for (const index of found) {
      const wait = slices.wait![index];
      const x = (slices.ts[index] - start) * scale;
      if (wait > least) frame.fillMiddle(Math.round(x - wait * scale), Math.round(x), color);
    }
  }
  for (const index of found) {
    const x0 = Math.max(0, Math.round((slices.ts[index] - start) * scale));
    const x1 = Math.min(frame.width, Math.round((slices.ts[index] + slices.dur[index] - start) * scale));
    const right = x1 - x0 > 4 ? x1 - 1 : Math.max(x1, x0 + 1);
    const color = scene.palette.opaque[slices.color[index]];
    frame.fill(x0, right, color);
    if (hasWaits) frame.fillMiddle(x0, right, color);
    if (labels && right - x0 > LABEL_PIXELS) labels.push({ slice: index, x: x0, y: top, width: right - x0 });
  }
  return hasWaits;
}

/** Names in the slices, by colour so that the style changes once per colour. Places are in pixels of the frame. */
function drawLabels(context: CanvasRenderingContext2D, scene: Scene, labels: Label[], scale: number): void {
  const slices = scene.slices;
  if (!slices || !labels.length) return;
  labels.sort((a, b) => slices.color[a.slice] - slices.color[b.slice]);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  let color = -1;
  for (const label of labels) {
    if (slices.color[label.slice] !== color) {
      color = slices.color[label.slice];
      context.fillStyle = scene.palette.text[color];
    }
    const text = fitted(context, slices.names[slices.name[label.slice]], label.width / scale - 6);
    if (text) context.fillText(text, label.x / scale + 3, label.y / scale + ROW_MIDDLE);
  }
}

const ROW_MIDDLE = 9;
// By font: labels and maxima have texts in common.
const widths = new Map<string, number>();

/** As much of the name as fits; measuring text is slow, so each name is measured once. */
function fitted(context: CanvasRenderingContext2D, name: string, room: number): string {
  const width = textWidth(context, name);
  if (width <= room) return name;
  const count = Math.floor((name.length * (room - 9)) / width);
  return count < 2 ? "" : `${name.slice(0, count)}…`;
}

function textWidth(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

function drawCounter(
  frame: Frame,
  scene: Scene,
  number: number,
  camera: Camera,
  top: number,
  bottom: number,
  budget: Budget,
): boolean {
  const series = scene.series[number];
  const { start, nsPerPixel } = camera;
  const level = levelOf(nsPerPixel);
  const span = TILE_COLUMNS * 2 ** level;
  const end = start + frame.width * nsPerPixel;
  const height = Math.round(bottom) - Math.round(top);
  let missing = false;
  const { style } = series.info;
  const share = style === "area" || style === "warning" ? 0.45 : 0.22;
  frame.startCurve(top, height, style === "warning" ? scene.palette.warning : scene.palette.counter, share);
  for (let index = Math.floor(start / span); index * span < end; index++) {
    let tile = scene.counters.get(number, level, index, height);
    let at = index;
    let up = 0;
    tile ??= budget.make(() => scene.counters.build(series, number, level, index, height));
    if (!tile) {
      missing = true;
      while (!tile && up < 3) {
        up++;
        at = Math.floor(at / 2);
        tile = scene.counters.get(number, level + up, at, height);
      }
      if (!tile) continue;
    }
    const x0 = Math.max(0, firstPixel((index * span - start) / nsPerPixel));
    const x1 = Math.min(frame.width, firstPixel(((index + 1) * span - start) / nsPerPixel));
    const q = 2 ** (level + up);
    frame.curve(tile, { offset: (start - at * TILE_COLUMNS * q) / q, ratio: nsPerPixel / q, x0, x1 });
  }
  return missing;
}

/** The largest value of each counter at its right end, on a ground of its own. */
function drawMaxima(
  context: CanvasRenderingContext2D,
  scene: Scene,
  camera: Camera,
  shown: readonly Track[],
  width: number,
): void {
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "top";
  for (const track of shown) {
    if (track.kind !== "counter") continue;
    const { info, maximum } = scene.series[track.series];
    const most = byUnit(maximum, info.unit);
    const y = Math.round(track.y - camera.scroll);
    const wide = textWidth(context, most);
    context.fillStyle = scene.theme.panel;
    context.fillRect(Math.floor(width - wide - 7), y + 1, Math.ceil(wide + 6), 12);
    context.fillStyle = scene.theme.muted;
    context.fillText(most, width - wide - 4, y + 2);
  }
}

/** The first pixel whose middle does not lie before the place. */
function firstPixel(place: number): number {
  return Math.ceil(place - 0.5);
}

function levelOf(nsPerPixel: number): number {
  return Math.ceil(Math.log2(nsPerPixel) - 1e-9);
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
