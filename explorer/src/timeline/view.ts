// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { makePalette, readTheme, type Theme } from "../colors";
import { duration, moment } from "../format";
import { type Band, Bands } from "./bands";
import { CounterTiles, type Series } from "./counters";
import {
  BUILD_BUDGET_MS,
  type Camera,
  drawAxis,
  drawScene,
  FIRST_BUDGET_MS,
  gridStep,
  rectangleOf,
  type Scene,
} from "./draw";
import { Frame } from "./frame";
import type { Overview } from "./overview";
import type { Slices } from "./slices";
import { TileCache } from "./tiles";
import { layOut, type Track, type TrackList, type TrackOptions } from "./tracks";

const AXIS_HEIGHT = 28;
const DRAG_PIXELS = 4;
const MOST_PIXELS = 6e6;
const LEAST_NS_PER_PIXEL = 0.002;

export interface Arrow {
  from: number;
  to: number;
}

export interface Mark {
  id: string;
  ts: number;
  name: string;
  color: string;
}

export interface Hover {
  x: number;
  y: number;
  slice: number;
  series: number;
  moment: number;
}

export interface BoxSelection {
  start: number;
  end: number;
  tracks: string[];
}

export interface Listener {
  select(index: number): void;
  hover(hover: Hover | null): void;
  view(start: number, end: number): void;
  box(box: BoxSelection | null): void;
  activate(index: number): void;
  annotate(moment: number): void;
  toggle(group: string): void;
  pin(label: string): void;
  layout(list: TrackList): void;
}

/** The timeline's canvases, labels and input. It knows nothing of React, so that moving and zooming never render it. */
export class TimelineView {
  private readonly root: HTMLElement;
  private readonly listener: Listener;
  private readonly axis: HTMLCanvasElement;
  private readonly scroller: HTMLElement;
  private readonly content: HTMLElement;
  private readonly labels: HTMLElement;
  private readonly holder: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  /** Takes the input; the marks are drawn in a canvas of their own inside of it. */
  private readonly overlay: HTMLElement;
  private readonly marked: HTMLCanvasElement;
  private readonly pixels = new Frame();
  private readonly live: HTMLElement;
  private readonly corner: HTMLElement;
  private readonly observer: ResizeObserver;
  private readonly cache = new TileCache();
  private readonly counters = new CounterTiles();
  private theme: Theme;
  private slices: Slices | null = null;
  private overview: Overview | null = null;
  private series: readonly Series[] = [];
  private list: TrackList = { tracks: [], height: 0, groups: [] };
  private options: TrackOptions;
  private scene: Scene;
  private highlighted: ReadonlySet<string> | null = null;
  private width = 0;
  private height = 0;
  private start = 0;
  private nsPerPixel = 1;
  private end = 1;
  private frame = 0;
  private dirty = { scene: true, overlay: true };
  private selected = -1;
  private hovered: Hover | null = null;
  private arrows: Arrow[] = [];
  private overlayIsBlank = false;
  private noted: Slices | Overview | null = null;
  private hits: number[] = [];
  private marks: Mark[] = [];
  private readonly bands = new Bands();
  private box: { start: number; end: number; top: number; bottom: number } | null = null;
  private target: {
    start: number;
    nsPerPixel: number;
    since: number;
    from: { start: number; nsPerPixel: number };
  } | null = null;
  private gesture: {
    kind: "pan" | "box" | "axis";
    x: number;
    y: number;
    start: number;
    scroll: number;
    moved: boolean;
  } | null = null;
  boxMode = false;

  constructor(root: HTMLElement, options: TrackOptions, listener: Listener) {
    this.root = root;
    this.options = options;
    this.listener = listener;
    root.replaceChildren();
    const make = (name: string, parent: HTMLElement, tag = "div") => {
      const element = document.createElement(tag);
      element.className = name;
      parent.append(element);
      return element;
    };
    const top = make("tl-top", root);
    this.corner = make("tl-corner", top);
    this.axis = make("tl-axis", top, "canvas") as HTMLCanvasElement;
    this.scroller = make("tl-scroll", root);
    this.content = make("tl-content", this.scroller);
    this.labels = make("tl-labels", this.content);
    this.holder = make("tl-holder", this.content);
    this.canvas = make("tl-canvas", this.holder, "canvas") as HTMLCanvasElement;
    this.overlay = make("tl-overlay", this.holder);
    this.marked = make("tl-marks", this.overlay, "canvas") as HTMLCanvasElement;
    this.overlay.tabIndex = 0;
    this.overlay.setAttribute("role", "application");
    this.overlay.setAttribute(
      "aria-label",
      "Timeline. Arrow keys move between events, W and S zoom, A and D move, F fits, slash searches, question mark lists all keys.",
    );
    this.live = make("visually-hidden", root);
    this.live.setAttribute("aria-live", "polite");
    this.theme = readTheme();
    this.scene = {
      slices: null,
      overview: null,
      series: [],
      tracks: [],
      palette: makePalette([], this.theme),
      theme: this.theme,
      cache: this.cache,
      counters: this.counters,
    };
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.scroller);
    this.scroller.addEventListener("scroll", () => this.invalidate());
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.overlay.addEventListener("pointerdown", (event) => this.pointerDown(event));
    this.overlay.addEventListener("pointermove", (event) => this.pointerMove(event));
    this.overlay.addEventListener("pointerup", (event) => this.pointerUp(event));
    this.overlay.addEventListener("pointerleave", () => this.setHover(null));
    this.overlay.addEventListener("dblclick", () => this.fitSelection());
    this.overlay.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      this.listener.annotate(this.momentAt(event.offsetX));
    });
    this.axis.addEventListener("pointerdown", (event) => this.axisDown(event));
    this.axis.addEventListener("pointermove", (event) => this.axisMove(event));
    this.axis.addEventListener("pointerup", () => {
      this.gesture = null;
    });
    this.overlay.addEventListener("keydown", (event) => this.key(event));
    this.overlay.addEventListener("focus", () => this.invalidate());
    this.overlay.addEventListener("blur", () => this.invalidate());
    this.resize();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.root.replaceChildren();
  }

  setData(slices: Slices | null, series: readonly Series[], keepView = false, overview: Overview | null = null): void {
    this.slices = slices;
    this.overview = slices ? null : overview;
    this.series = series;
    let end = (slices ?? overview)?.end ?? 1;
    for (const entry of series) if (entry.ts.length) end = Math.max(end, entry.ts[entry.ts.length - 1]);
    this.end = Math.max(end, 1);
    this.selected = -1;
    this.arrows = [];
    this.hits = [];
    this.cache.clear();
    this.counters.clear();
    this.repaint();
    this.layOut();
    if (!keepView || this.width === 0) this.show(0, this.end, false);
    this.invalidate();
  }

  setOptions(options: TrackOptions): void {
    this.options = options;
    this.layOut();
  }

  /** After a change of colours, of the theme or of what is highlighted. */
  repaint(highlighted = this.highlighted): void {
    this.highlighted = highlighted;
    this.theme = readTheme();
    this.cache.clear();
    this.counters.clear();
    const { slices, overview, series, theme } = this;
    const palette = makePalette((slices ?? overview)?.colors ?? [], theme, highlighted);
    this.scene = { ...this.scene, slices, overview, series, palette, theme };
    this.invalidate();
  }

  setArrows(arrows: Arrow[]): void {
    this.arrows = arrows;
    this.invalidateOverlay();
  }

  setHits(hits: number[]): void {
    this.hits = hits;
    this.invalidateOverlay();
  }

  setMarks(marks: Mark[]): void {
    this.marks = marks;
    this.invalidateOverlay();
  }

  setBands(bands: readonly Band[]): void {
    this.bands.set(bands);
    this.invalidateOverlay();
  }

  clearBox(): void {
    this.box = null;
    this.listener.box(null);
    this.invalidateOverlay();
  }

  showBox(start: number, end: number): void {
    this.box = { start, end, top: 0, bottom: this.list.height };
    this.invalidateOverlay();
  }

  get selection(): number {
    return this.selected;
  }

  get view(): { start: number; end: number } {
    return { start: this.start, end: this.start + this.width * this.nsPerPixel };
  }

  select(index: number, reveal = false): void {
    this.selected = index;
    if (index >= 0 && this.slices) {
      if (reveal) this.reveal(index);
      const lane = this.slices.lanes[this.slices.laneOfSlice(index)];
      this.live.textContent = `${this.slices.names[this.slices.name[index]]}, ${lane.label}, at ${duration(this.slices.ts[index])}, lasts ${duration(this.slices.dur[index])}`;
    }
    this.invalidateOverlay();
  }

  /** Brings a slice into view; zooms only if it would not be seen at the present scale. */
  reveal(index: number): void {
    const slices = this.slices!;
    const lane = slices.laneOfSlice(index);
    const track = this.list.tracks.find((entry) => entry.kind === "lane" && entry.lane === lane);
    if (!track) this.listener.toggle(slices.lanes[lane].group);
    else if (track.y < this.scroller.scrollTop || track.y + track.height > this.scroller.scrollTop + this.height)
      this.scroller.scrollTop = Math.max(0, track.y - this.height / 2);
    const { start, end } = this.view;
    const from = slices.ts[index];
    const to = from + slices.dur[index];
    const wide = (to - from) / this.nsPerPixel;
    if (from < start || to > end || wide < 6) {
      const span =
        wide < 6
          ? Math.max((to - from) * 20, this.width * LEAST_NS_PER_PIXEL)
          : Math.max(end - start, (to - from) * 1.5);
      const middle = (from + to) / 2;
      this.show(middle - span / 2, middle + span / 2);
    }
  }

  show(start: number, end: number, animate = true): void {
    const width = Math.max(1, this.width);
    const least = width * LEAST_NS_PER_PIXEL;
    const span = Math.min(Math.max(end - start, least), this.end * 1.1);
    const middle = (start + end) / 2;
    const from = Math.max(-this.end * 0.05, Math.min(middle - span / 2, this.end * 1.05 - span));
    const goal = { start: from, nsPerPixel: span / width };
    if (animate && this.width && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.target = { ...goal, since: performance.now(), from: { start: this.start, nsPerPixel: this.nsPerPixel } };
      this.invalidate();
    } else {
      this.target = null;
      this.start = goal.start;
      this.nsPerPixel = goal.nsPerPixel;
      this.viewChanged();
    }
  }

  fit(): void {
    this.show(0, this.end);
  }

  fitSelection(): void {
    if (this.box) return this.show(this.box.start, this.box.end);
    if (this.selected < 0 || !this.slices) return this.fit();
    const from = this.slices.ts[this.selected];
    const span = Math.max(this.slices.dur[this.selected], 1);
    this.show(from - span * 0.5, from + span * 1.5);
  }

  zoom(factor: number, at = this.width / 2): void {
    const width = Math.max(1, this.width);
    const span = Math.min(this.end * 1.1, Math.max(width * LEAST_NS_PER_PIXEL, width * this.nsPerPixel * factor));
    const middle = this.momentAt(at);
    const start = middle - (at / width) * span;
    this.show(start, start + span, false);
  }

  pan(pixels: number): void {
    const span = this.width * this.nsPerPixel;
    const start = this.start + pixels * this.nsPerPixel;
    this.show(start, start + span, false);
  }

  focus(): void {
    this.overlay.focus();
  }

  /** What is in view, for the statistics of the present window and for exports. */
  visibleSlices(limit: number): number[] {
    const found: number[] = [];
    const { start, end } = this.view;
    if (!this.slices) return found;
    for (let row = 0; row < this.slices.rowCount && found.length < limit; row++) {
      const first = this.slices.firstVisible(row, start);
      const last = this.slices.lowerBound(end, first, this.slices.off[row + 1]);
      for (let i = first; i < last && found.length < limit; i++) found.push(i);
    }
    return found;
  }

  private momentAt(x: number): number {
    return this.start + x * this.nsPerPixel;
  }

  private layOut(): void {
    const { slices, overview, series } = this;
    this.list = layOut((slices ?? overview)?.lanes ?? [], series, this.options);
    this.scene = { ...this.scene, slices, overview, series, tracks: this.list.tracks };
    this.content.style.height = `${Math.max(this.list.height, this.height)}px`;
    this.labels.replaceChildren(...this.list.tracks.map((track) => this.label(track)));
    this.listener.layout(this.list);
    this.invalidate();
  }

  private label(track: Track): HTMLElement {
    const element = document.createElement("div");
    element.style.top = `${track.y}px`;
    element.style.height = `${track.height}px`;
    if (track.kind === "header") {
      element.className = "tl-group";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${track.collapsed ? "▸" : "▾"} ${track.group}`;
      button.setAttribute("aria-expanded", String(!track.collapsed));
      const count = document.createElement("span");
      count.textContent = ` ${track.count}`;
      button.append(count);
      if (track.group !== "Pinned") button.addEventListener("click", () => this.listener.toggle(track.group));
      element.append(button);
      return element;
    }
    element.className = `tl-label tl-${track.kind}`;
    element.title = track.label;
    const text = document.createElement("span");
    // The end of a long path says most: the line runs from the right, its text as ever.
    const isolated = document.createElement("bdi");
    isolated.textContent = track.label;
    text.append(isolated);
    const pin = document.createElement("button");
    pin.type = "button";
    pin.className = "tl-pin";
    pin.textContent = track.pinned ? "✕" : "⇧";
    pin.setAttribute("aria-label", `${track.pinned ? "Unpin" : "Pin"} ${track.label}`);
    pin.addEventListener("click", () => this.listener.pin(track.label));
    element.append(text, pin);
    return element;
  }

  private resize(): void {
    const height = this.scroller.clientHeight;
    const width = Math.max(1, this.scroller.clientWidth - this.labels.offsetWidth);
    if (height === 0 || width <= 1) return;
    const before = this.view;
    const first = this.width === 0;
    this.width = width;
    this.height = height;
    this.holder.style.height = `${height}px`;
    this.content.style.height = `${Math.max(this.list.height, height)}px`;
    this.corner.style.width = `${this.labels.offsetWidth}px`;
    const scale = this.pixelRatio();
    for (const canvas of [this.canvas, this.marked]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    this.axis.width = Math.round(width * scale);
    this.axis.height = Math.round(AXIS_HEIGHT * scale);
    this.axis.style.width = `${width}px`;
    this.axis.style.height = `${AXIS_HEIGHT}px`;
    if (first) this.show(0, this.end, false);
    else this.show(before.start, before.end, false);
    // A resized canvas is empty until it is drawn: doing it at once avoids a flash.
    this.draw();
  }

  /** Sharp text costs raster time: very large canvases are drawn at one pixel per CSS pixel. */
  private pixelRatio(): number {
    const wanted = Math.min(2, window.devicePixelRatio || 1);
    return this.width * this.height * wanted * wanted > MOST_PIXELS ? 1 : wanted;
  }

  private invalidate(): void {
    this.dirty.scene = true;
    this.invalidateOverlay();
  }

  private invalidateOverlay(): void {
    this.dirty.overlay = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  private viewChanged(): void {
    const { start, end } = this.view;
    this.listener.view(start, end);
    this.invalidate();
  }

  private camera(): Camera {
    return { start: this.start, nsPerPixel: this.nsPerPixel, scroll: this.scroller.scrollTop };
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.width === 0) return;
    if (this.target) this.step(this.target);
    const scale = this.canvas.width / this.width;
    let again = this.target !== null;
    if (this.dirty.scene) {
      const context = this.canvas.getContext("2d", { alpha: false })!;
      const missing = drawScene(
        context,
        this.pixels,
        this.scene,
        this.camera(),
        scale,
        this.overlay.matches(":focus-visible"),
        this.noted ? BUILD_BUDGET_MS : FIRST_BUDGET_MS,
      );
      const axis = this.axis.getContext("2d", { alpha: false })!;
      axis.setTransform(scale, 0, 0, scale, 0, 0);
      drawAxis(axis, this.theme, this.camera(), this.end, this.width, AXIS_HEIGHT);
      if (!missing) this.noteDrawn();
      this.dirty.scene = missing;
      again = again || missing;
    }
    if (this.dirty.overlay) {
      this.drawOverlay(scale);
      this.dirty.overlay = false;
    }
    if (again) {
      this.dirty.scene = true;
      this.invalidateOverlay();
    }
  }

  /** Notes in the browser's performance timeline when the overview and when the slices were drawn first. */
  private noteDrawn(): void {
    const drawn = this.slices ?? this.overview;
    if (drawn && this.noted !== drawn) performance.mark(this.slices ? "slices drawn" : "overview drawn");
    this.noted = drawn;
  }

  private step(target: NonNullable<TimelineView["target"]>): void {
    const share = Math.min(1, (performance.now() - target.since) / 180);
    const eased = 1 - (1 - share) ** 3;
    const { from } = target;
    // Scales are interpolated as ratios, so that zooming looks even.
    this.nsPerPixel = from.nsPerPixel * (target.nsPerPixel / from.nsPerPixel) ** eased;
    const ratio =
      Math.abs(target.nsPerPixel - from.nsPerPixel) < 1e-12 * from.nsPerPixel
        ? eased
        : (this.nsPerPixel - from.nsPerPixel) / (target.nsPerPixel - from.nsPerPixel);
    this.start = from.start + (target.start - from.start) * ratio;
    if (share >= 1) {
      this.start = target.start;
      this.nsPerPixel = target.nsPerPixel;
      this.target = null;
      const { start, end } = this.view;
      this.listener.view(start, end);
    }
    this.dirty.scene = true;
    this.dirty.overlay = true;
  }

  private drawOverlay(scale: number): void {
    const isBlank =
      !this.box &&
      !this.hovered &&
      !this.hits.length &&
      !this.arrows.length &&
      !this.marks.length &&
      this.bands.isEmpty &&
      !(this.selected >= 0);
    // A blank canvas that is not drawn and not composed costs nothing while the view moves.
    this.marked.style.display = isBlank ? "none" : "";
    if (isBlank && this.overlayIsBlank) return;
    this.overlayIsBlank = isBlank;
    const context = this.marked.getContext("2d")!;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const camera = this.camera();
    const { theme } = this;
    this.bands.draw(context, theme, camera, this.width, this.height);
    if (this.box) {
      const x0 = (this.box.start - this.start) / this.nsPerPixel;
      const x1 = (this.box.end - this.start) / this.nsPerPixel;
      const top = this.box.top - camera.scroll;
      context.fillStyle = theme.accent;
      context.globalAlpha = 0.14;
      context.fillRect(x0, top, x1 - x0, this.box.bottom - this.box.top);
      context.globalAlpha = 1;
      context.strokeStyle = theme.accent;
      context.lineWidth = 1;
      context.strokeRect(x0 + 0.5, top + 0.5, x1 - x0, this.box.bottom - this.box.top);
    }
    context.fillStyle = theme.warning;
    for (const hit of this.hits) {
      const r = rectangleOf(this.scene, camera, hit);
      if (r && r.x + r.width > 0 && r.x < this.width && r.y > -20 && r.y < this.height)
        context.fillRect(r.x, r.y + r.height - 4, Math.max(3, r.width), 3);
    }
    this.drawArrows(context, camera);
    for (const mark of this.marks) {
      const x = Math.round((mark.ts - this.start) / this.nsPerPixel);
      if (x < -200 || x > this.width) continue;
      context.fillStyle = mark.color;
      context.fillRect(x, 0, 1.5, this.height);
      context.font = "11px system-ui, sans-serif";
      const wide = context.measureText(mark.name).width + 10;
      context.fillRect(x, 0, wide, 16);
      context.fillStyle = "#ffffff";
      context.textBaseline = "middle";
      context.fillText(mark.name, x + 5, 8);
    }
    if (this.hovered && this.hovered.slice >= 0 && this.hovered.slice !== this.selected) {
      const r = rectangleOf(this.scene, camera, this.hovered.slice);
      if (r) {
        context.strokeStyle = theme.text;
        context.lineWidth = 1;
        context.strokeRect(
          Math.max(-2, r.x) - 0.5,
          r.y - 0.5,
          Math.min(r.width, this.width + 4 - Math.max(-2, r.x)) + 1,
          r.height,
        );
      }
    }
    const chosen = rectangleOf(this.scene, camera, this.selected);
    if (chosen) {
      const left = Math.max(-3, chosen.x);
      const right = Math.min(this.width + 3, chosen.x + chosen.width);
      context.strokeStyle = theme.selection;
      context.lineWidth = 2;
      context.strokeRect(left - 1, chosen.y - 1, Math.max(3, right - left) + 2, chosen.height + 1);
    }
    if (this.hovered) {
      const x = Math.round(this.hovered.x);
      context.fillStyle = theme.muted;
      context.globalAlpha = 0.5;
      context.fillRect(x, 0, 1, this.height);
      context.globalAlpha = 1;
      const text = moment(this.hovered.moment, Math.max(gridStep(this.nsPerPixel) / 100, 0.001));
      context.font = "11px system-ui, sans-serif";
      const wide = context.measureText(text).width + 8;
      const at = Math.min(x + 1, this.width - wide);
      context.fillStyle = theme.text;
      context.fillRect(at, this.height - 17, wide, 17);
      context.fillStyle = theme.panel;
      context.textBaseline = "middle";
      context.fillText(text, at + 4, this.height - 8);
    }
  }

  private drawArrows(context: CanvasRenderingContext2D, camera: Camera): void {
    context.lineWidth = 1.5;
    for (const arrow of this.arrows) {
      const a = rectangleOf(this.scene, camera, arrow.from);
      const b = rectangleOf(this.scene, camera, arrow.to);
      if (!a || !b) continue;
      // Out of the end of what came first, or of its start if the other one lies inside it.
      const x0 = a.x + a.width <= b.x + 1 ? a.x + a.width : Math.max(a.x, Math.min(b.x, a.x + a.width));
      const y0 = a.y + a.height / 2;
      const x1 = b.x;
      const y1 = b.y + b.height / 2;
      if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > this.width) continue;
      const bend = Math.max(18, Math.min(90, Math.abs(x1 - x0) / 2));
      context.strokeStyle = this.theme.flow;
      context.fillStyle = this.theme.flow;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 2, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 6, y1 - 3.5);
      context.lineTo(x1 - 6, y1 + 3.5);
      context.fill();
    }
  }

  private trackAt(y: number): Track | undefined {
    const at = y + this.scroller.scrollTop;
    return this.list.tracks.find((track) => at >= track.y && at < track.y + track.height);
  }

  private pickAt(x: number, y: number): Hover {
    const track = this.trackAt(y);
    const hover: Hover = { x, y, slice: -1, series: -1, moment: this.momentAt(x) };
    if (track?.kind === "lane" && this.slices) {
      const lane = this.slices.lanes[track.lane];
      const row = Math.min(lane.rows - 1, Math.floor((y + this.scroller.scrollTop - track.y) / track.rowHeight));
      hover.slice = this.slices.pick(lane.firstRow + row, hover.moment, 2 * this.nsPerPixel);
    } else if (track?.kind === "counter") {
      hover.series = track.series;
    }
    return hover;
  }

  private setHover(hover: Hover | null): void {
    this.hovered = hover;
    this.listener.hover(hover);
    this.invalidateOverlay();
  }

  private wheel(event: WheelEvent): void {
    const x = event.clientX - this.overlay.getBoundingClientRect().left;
    const amount = event.deltaMode === 1 ? 30 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * amount * 0.002), Math.max(0, x));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) * amount);
    }
  }

  private pointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.overlay.setPointerCapture(event.pointerId);
    const kind = event.shiftKey || this.boxMode ? "box" : "pan";
    this.gesture = {
      kind,
      x: event.offsetX,
      y: event.offsetY,
      start: this.start,
      scroll: this.scroller.scrollTop,
      moved: false,
    };
  }

  private pointerMove(event: PointerEvent): void {
    const gesture = this.gesture;
    if (!gesture) return this.setHover(this.pickAt(event.offsetX, event.offsetY));
    const dx = event.offsetX - gesture.x;
    const dy = event.offsetY - gesture.y;
    if (!gesture.moved && Math.hypot(dx, dy) < DRAG_PIXELS) return;
    gesture.moved = true;
    if (gesture.kind === "pan") {
      this.overlay.style.cursor = "grabbing";
      const start = gesture.start - dx * this.nsPerPixel;
      this.show(start, start + this.width * this.nsPerPixel, false);
      this.scroller.scrollTop = gesture.scroll - dy;
    } else {
      const a = this.momentAt(Math.min(gesture.x, event.offsetX));
      const b = this.momentAt(Math.max(gesture.x, event.offsetX));
      const scroll = this.scroller.scrollTop;
      this.box = {
        start: Math.max(0, a),
        end: b,
        top: Math.min(gesture.y, event.offsetY) + scroll,
        bottom: Math.max(gesture.y, event.offsetY) + scroll,
      };
      this.invalidateOverlay();
    }
  }

  private pointerUp(event: PointerEvent): void {
    const gesture = this.gesture;
    this.gesture = null;
    this.overlay.style.cursor = "";
    if (!gesture) return;
    if (gesture.moved && gesture.kind === "box" && this.box) {
      const { start, end, top, bottom } = this.box;
      const tracks = this.list.tracks.filter(
        (track) => track.kind === "lane" && track.y < bottom && track.y + track.height > top,
      );
      this.listener.box({ start, end, tracks: tracks.map((track) => (track.kind === "lane" ? track.label : "")) });
    } else if (!gesture.moved) {
      const found = this.pickAt(event.offsetX, event.offsetY).slice;
      if (this.box) this.clearBox();
      this.select(found);
      this.listener.select(found);
      if (found >= 0 && (event.ctrlKey || event.metaKey)) this.listener.activate(found);
    }
  }

  private axisDown(event: PointerEvent): void {
    this.axis.setPointerCapture(event.pointerId);
    this.gesture = { kind: "axis", x: event.offsetX, y: 0, start: this.start, scroll: 0, moved: false };
  }

  private axisMove(event: PointerEvent): void {
    if (this.gesture?.kind !== "axis") return;
    const start = this.gesture.start - (event.offsetX - this.gesture.x) * this.nsPerPixel;
    this.show(start, start + this.width * this.nsPerPixel, false);
  }

  /** Keys of the timeline; true if the key was one of them. */
  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const page = this.width * 0.12;
    const actions: Record<string, () => void> = {
      w: () => this.zoom(0.8, this.hovered?.x ?? this.width / 2),
      s: () => this.zoom(1.25, this.hovered?.x ?? this.width / 2),
      a: () => this.pan(-page),
      d: () => this.pan(page),
      f: () => this.fitSelection(),
      "0": () => this.fit(),
      m: () =>
        this.listener.annotate(
          this.selected >= 0 ? this.slices!.ts[this.selected] : (this.hovered?.moment ?? this.momentAt(this.width / 2)),
        ),
      ArrowLeft: () => this.neighbour(-1),
      ArrowRight: () => this.neighbour(1),
      ArrowUp: () => this.otherRow(-1),
      ArrowDown: () => this.otherRow(1),
      PageUp: () => this.scroller.scrollBy(0, -this.height * 0.8),
      PageDown: () => this.scroller.scrollBy(0, this.height * 0.8),
      Home: () => this.show(0, this.width * this.nsPerPixel),
      End: () => this.show(this.end - this.width * this.nsPerPixel, this.end),
      Enter: () => {
        if (this.selected >= 0) this.listener.activate(this.selected);
      },
      Escape: () => {
        this.clearBox();
        this.select(-1);
        this.listener.select(-1);
      },
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return false;
    event.preventDefault();
    action();
    return true;
  }

  private choose(index: number): void {
    if (index < 0) return;
    this.select(index, true);
    this.listener.select(index);
  }

  private neighbour(step: number): void {
    const slices = this.slices;
    if (!slices?.count) return;
    if (this.selected < 0) return this.choose(this.firstInView());
    const row = slices.rowOfSlice(this.selected);
    const next = this.selected + step;
    if (next >= slices.off[row] && next < slices.off[row + 1]) this.choose(next);
  }

  private otherRow(step: number): void {
    const slices = this.slices;
    if (!slices?.count) return;
    if (this.selected < 0) return this.choose(this.firstInView());
    const middle = slices.ts[this.selected] + slices.dur[this.selected] / 2;
    // Rows in the order in which they are shown.
    const rows: number[] = [];
    for (const track of this.list.tracks)
      if (track.kind === "lane" && !track.pinned)
        for (let r = 0; r < slices.lanes[track.lane].rows; r++) rows.push(slices.lanes[track.lane].firstRow + r);
    let place = rows.indexOf(slices.rowOfSlice(this.selected)) + step;
    while (place >= 0 && place < rows.length) {
      const low = slices.off[rows[place]];
      const high = slices.off[rows[place] + 1];
      if (low < high) {
        const after = slices.lowerBound(middle, low, high);
        return this.choose(after > low ? after - 1 : after);
      }
      place += step;
    }
  }

  private firstInView(): number {
    const slices = this.slices!;
    for (const track of this.list.tracks) {
      if (track.kind !== "lane") continue;
      const { firstRow } = slices.lanes[track.lane];
      const found = slices.firstVisible(firstRow, this.start);
      if (found < slices.off[firstRow + 1]) return found;
    }
    return -1;
  }
}
