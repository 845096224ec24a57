// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { SliceColumns } from "./data/drawn";
import type { Annotation, DataSource, ProfileDescription, Row, RowOptions } from "./data/source";
import {
  formatChoice,
  type GeneratedRegions,
  hierarchyRegions,
  levelsOf,
  NO_REGIONS,
  parseChoice,
  type RegionChoice,
  rowRegions,
} from "./regions";
import { note, route } from "./route";
import { Store } from "./store";
import { type Series, seriesOf } from "./timeline/counters";
import { GROUPINGS, type Grouping, groupLanes } from "./timeline/grouping";
import { Overview } from "./timeline/overview";
import { Slices } from "./timeline/slices";
import type { TrackOptions } from "./timeline/tracks";
import type { BoxSelection, TimelineView } from "./timeline/view";
import { treeOf } from "./tree";

export interface Selection {
  table: string;
  row: number;
  /** Place among the drawn slices; -1 for rows that are not drawn. */
  index: number;
}

export const COLOR_CHOICES = ["operator", "opcode", "layer", "kernel", "node"] as const;
export type ColorChoice = (typeof COLOR_CHOICES)[number];

const KEPT_OPTIONS = "neuron-explorer.tracks";

/** What is open: one system or device profile, its drawn data, and what the user has chosen in it. */
export class Session {
  readonly source: DataSource;
  readonly profile: ProfileDescription;
  readonly device: string;
  readonly status = new Store<"loading" | "overview" | "ready" | "error">("loading");
  readonly error = new Store("");
  /** Whether the first picture of the timeline is on the screen. */
  readonly isPainted = new Store(false);
  readonly slices = new Store<Slices | null>(null);
  /** What is drawn until the slices of a large profile are there. */
  readonly overview = new Store<Overview | null>(null);
  readonly series = new Store<readonly Series[]>([]);
  readonly selection = new Store<Selection | null>(null);
  readonly window = new Store({ start: 0, end: 1 });
  readonly box = new Store<BoxSelection | null>(null);
  readonly highlight = new Store<ReadonlySet<string> | null>(null);
  readonly annotations = new Store<readonly Annotation[]>([]);
  /** Which stretches of time are named in the timeline and can be chosen in the summary. */
  readonly regionChoice = new Store<RegionChoice>(NO_REGIONS);
  readonly options: Store<TrackOptions>;
  readonly grouping = new Store<Grouping>("Default");
  readonly colorBy = new Store<ColorChoice>("operator");
  readonly timeline = new Store<TimelineView | null>(null);
  readonly hits = new Store<readonly number[]>([]);
  /** A panel that somebody asked to see, with a word for it; the dock follows. */
  readonly request = new Store<{ panel: string; argument?: string } | null>(null);
  private columns: SliceColumns | null = null;
  private generated: { key: string; regions: Promise<GeneratedRegions> } | null = null;
  private noteTimer = 0;

  constructor(source: DataSource, profile: ProfileDescription, device: string) {
    this.source = source;
    this.profile = profile;
    this.device = device;
    this.annotations.set(profile.annotations ?? []);
    this.options = new Store(readOptions(device === "system"));
    this.regionChoice.set(parseChoice(route.get().query.regions));
    const grouping = route.get().query.group as Grouping;
    if (GROUPINGS.includes(grouping)) this.grouping.set(grouping);
  }

  get isSystem(): boolean {
    return this.device === "system";
  }

  get tables(): Record<string, number> {
    return this.isSystem ? this.profile.tables : (this.profile.device_tables[this.device] ?? {});
  }

  has(table: string): boolean {
    return (this.tables[table] ?? 0) > 0;
  }

  /** Rows of a table; none if the profile lacks it. */
  rows(table: string, options: RowOptions = {}): Promise<Row[]> {
    return this.has(table) ? this.source.rows(this.profile.name, this.device, table, options) : Promise.resolve([]);
  }

  async load(): Promise<void> {
    try {
      const name = this.profile.name;
      const overview = await this.source.overview(this.profile, this.device);
      if (overview) {
        this.series.set(seriesOf(overview.counters));
        this.overview.set(new Overview(overview));
        this.status.set("overview");
        // Reading the slices takes all that the machine has: what is in view comes first.
        await painted();
        this.isPainted.set(true);
      }
      const counters = this.source.counters(name, this.device);
      counters.catch(() => undefined);
      this.columns = await this.source.slices(name, this.device);
      this.slices.set(this.makeSlices());
      this.status.set("ready");
      this.series.set(seriesOf(await counters));
      await painted();
    } catch (error) {
      this.error.set((error as Error).message);
      this.status.set("error");
    }
    this.isPainted.set(true);
  }

  private makeSlices(): Slices {
    const columns = this.columns!;
    return this.isSystem ? new Slices(columns, groupLanes(columns, this.grouping.get())) : new Slices(columns);
  }

  regroup(grouping: Grouping): void {
    this.grouping.set(grouping);
    if (!this.columns) return;
    const selected = this.selection.get();
    this.slices.set(this.makeSlices());
    note({ group: grouping === "Default" ? undefined : grouping });
    if (selected) this.selectRow(selected.table, selected.row, undefined, false);
  }

  async recolor(by: ColorChoice): Promise<void> {
    const { colors, color } = await this.source.colors(this.profile.name, this.device, by);
    const slices = this.slices.get();
    if (!slices) return;
    slices.recolor(colors, color);
    this.colorBy.set(by);
    this.highlight.set(null);
    this.timeline.get()?.repaint(null);
  }

  setHighlight(names: ReadonlySet<string> | null): void {
    this.highlight.set(names);
    this.timeline.get()?.repaint(names);
  }

  /** Shades everything but the slices whose operator, layer or kernel is one of the names. */
  async highlightBy(by: ColorChoice, names: ReadonlySet<string>): Promise<void> {
    if (this.colorBy.get() !== by) await this.recolor(by);
    this.setHighlight(names);
  }

  selectIndex(index: number): void {
    const slices = this.slices.get();
    if (!slices || index < 0) {
      this.selection.set(null);
    } else {
      const table = slices.lanes[slices.laneOfSlice(index)].table;
      this.selection.set({ table, row: slices.row[index], index });
    }
    this.noteView();
  }

  /** Selects a row of a table and shows it. `start` speeds up finding it. */
  selectRow(table: string, row: number, start?: number, reveal = true): void {
    const slices = this.slices.get();
    let index = slices ? slices.find(table, row, start) : -1;
    if (index < 0 && start !== undefined) index = slices?.find(table, row) ?? -1;
    this.selection.set({ table, row, index });
    this.timeline.get()?.select(index, reveal);
    this.noteView();
  }

  select(row: Row, table: string): void {
    const start = (row.start_ts ?? row.timestamp) as number | string | undefined;
    this.selectRow(table, row.row, start === undefined ? undefined : this.fromTable(start));
  }

  /** A moment of a table as the timeline draws it. Unix nanoseconds arrive as text, as a double cannot hold them. */
  fromTable(value: number | string): number {
    if (!this.isSystem) return Number(value);
    const base = this.slices.get()?.base ?? 0n;
    return Number(BigInt(value) - base);
  }

  show(start: number, end: number): void {
    const span = Math.max(end - start, 1);
    this.timeline.get()?.show(start - span * 0.08, end + span * 0.08);
  }

  open(panel: string, argument?: string): void {
    this.request.set({ panel, argument });
  }

  setWindow(start: number, end: number): void {
    this.window.set({ start, end });
    this.noteView();
  }

  private noteView(): void {
    clearTimeout(this.noteTimer);
    this.noteTimer = window.setTimeout(() => {
      const { start, end } = this.window.get();
      const selected = this.selection.get();
      const whole = this.slices.get()?.end ?? 1;
      const all = start <= 0 && end >= whole;
      note({
        t: all ? undefined : `${round(start)},${round(end)}`,
        sel: selected ? `${selected.table}:${selected.row}` : undefined,
      });
    }, 250);
  }

  /** Puts back what a deep link says. */
  restore(query: Record<string, string>): void {
    const [from, to] = (query.t ?? "").split(",").map(Number);
    if (Number.isFinite(from) && Number.isFinite(to) && to > from) this.timeline.get()?.show(from, to, false);
    const selected = /^([A-Za-z]+):(\d+)$/.exec(query.sel ?? "");
    if (selected) this.selectRow(selected[1], Number(selected[2]), undefined, !query.t);
  }

  setOptions(change: (options: TrackOptions) => TrackOptions): void {
    this.options.update(change);
    const { collapsed, hiddenGroups, pinned, showHidden } = this.options.get();
    try {
      const text = JSON.stringify([collapsed, hiddenGroups, pinned, showHidden].map((set) => [...set]));
      localStorage.setItem(`${KEPT_OPTIONS}.${this.isSystem ? "system" : "device"}`, text);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }

  addAnnotation(ts: number, name?: string): void {
    const colors = ["#b3261e", "#7b3fb5", "#0b6e4f", "#1f5fbf", "#8a5a00"];
    const number = this.annotations.get().length;
    const entry: Annotation = {
      id: `${Date.now().toString(36)}${number}`,
      device: this.device,
      name: name ?? `mark ${number + 1}`,
      ts,
      color: colors[number % colors.length],
    };
    this.setAnnotations([...this.annotations.get(), entry]);
  }

  /** All regions of the chosen generator, made once for everything that shows them. */
  generatedRegions(): Promise<GeneratedRegions> {
    const { generator, level } = this.regionChoice.get();
    const key = `${generator} ${level}`;
    if (this.generated?.key === key) return this.generated.regions;
    const regions = this.generateRegions();
    this.generated = { key, regions };
    // Who asks again after an error gets another try.
    regions.catch(() => {
      this.generated = null;
    });
    return regions;
  }

  private async generateRegions(): Promise<GeneratedRegions> {
    const { generator, level } = this.regionChoice.get();
    const rows = (table: string) => this.rows(table, { limit: 50_000 });
    if (generator === "kernels") return { regions: rowRegions(await rows("KernelRoofline"), "kernel_name"), levels: 0 };
    if (generator === "collectives") return { regions: rowRegions(await rows("CcOp"), "operation"), levels: 0 };
    if (generator === "none") return { regions: [], levels: 0 };
    const roots = treeOf(await rows("FrameworkNode"));
    return { regions: hierarchyRegions(roots, level), levels: levelsOf(roots) };
  }

  chooseRegions(choice: RegionChoice): void {
    this.regionChoice.set(choice);
    note({ regions: formatChoice(choice) });
  }

  setAnnotations(annotations: readonly Annotation[]): void {
    this.annotations.set(annotations);
    if (this.source.canWrite) {
      this.source.saveAnnotations(this.profile.name, [...annotations]).catch((error: Error) => notify(error.message));
    }
  }
}

/** The page as it stands now is on the screen; a page in the background is not drawn and does not wait. */
function painted(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 500);
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });
}

function round(value: number): string {
  return value.toPrecision(12).replace(/\.?0+$/, "");
}

function readOptions(system: boolean): TrackOptions {
  const fresh: TrackOptions = {
    collapsed: new Set(system ? [] : ["DMA engines"]),
    hiddenGroups: new Set(),
    pinned: new Set(),
    showHidden: new Set(),
  };
  try {
    const kept = JSON.parse(localStorage.getItem(`${KEPT_OPTIONS}.${system ? "system" : "device"}`) ?? "null");
    if (Array.isArray(kept) && kept.length === 4) {
      const [collapsed, hiddenGroups, pinned, showHidden] = kept.map((list: string[]) => new Set(list));
      return { collapsed, hiddenGroups, pinned, showHidden };
    }
  } catch {
    // What cannot be read counts as nothing kept.
  }
  return fresh;
}

export const notices = new Store<readonly { id: number; text: string }[]>([]);
let noticeNumber = 0;

export function notify(text: string): void {
  const id = ++noticeNumber;
  notices.update((list) => [...list, { id, text }]);
  setTimeout(() => notices.update((list) => list.filter((entry) => entry.id !== id)), 8000);
}
