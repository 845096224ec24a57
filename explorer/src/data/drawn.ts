// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { tableFromIPC } from "apache-arrow";

export interface LaneKey {
  label: string;
  group: string;
  table: string;
  trace_event_source?: string | null;
  instance_id?: string | null;
  process_id?: number | null;
  thread_id?: number | null;
  nc_idx?: number | null;
  pcore_idx?: number | null;
  worker_gid?: number | null;
  framework_stream_id?: string | null;
  transfer?: string | null;
}

/** Columns of a `slices` stream (python/neuron_explorer/drawing.py). */
export interface SliceColumns {
  kind: "system" | "device";
  base: bigint;
  end: number;
  lanes: LaneKey[];
  names: string[];
  colors: string[];
  /** Of each slice; null if the slices are sorted by drawn row, which `rows` and `offsets` describe. */
  lane: Uint16Array | null;
  ts: Moments;
  dur: Moments;
  name: Uint16Array | Uint32Array;
  color: Uint16Array;
  row: Uint32Array;
  wait: Uint32Array | null;
  /** How many rows each lane has. */
  rows: number[] | null;
  /** First slice of each row, and one entry past the last. */
  offsets: number[] | null;
  /** If somebody has made them already. */
  indexes?: Indexes;
}

export type Moments = Uint32Array | Float64Array;

export interface Indexes {
  /** Sum of the durations before each slice. */
  sum: Float64Array;
  /** Index of the longest slice of every block of 8, of 64, ... */
  pyramid: Uint32Array[];
}

/** An `overview` stream (python/neuron_explorer/overview.py). */
export interface OverviewColumns {
  end: number;
  lanes: LaneKey[];
  rows: number[];
  colors: string[];
  levels: { level: number; columns: number; begin: number }[];
  color: Uint16Array;
  share: Uint8Array;
  counters: CounterColumns;
}

export interface SeriesInfo {
  label: string;
  group: string;
  unit: string;
  style: "step" | "line" | "area" | "warning";
  max: number | null;
  hidden: boolean;
}

export interface CounterColumns {
  series: SeriesInfo[];
  number: Uint16Array;
  ts: Float64Array;
  value: Float64Array;
}

export const FORMAT_VERSION = 2;

interface Decoded {
  metadata: Record<string, unknown>;
  column<T>(name: string, empty: T): T;
}

function decode(bytes: Uint8Array): Decoded {
  const table = tableFromIPC(bytes);
  const text = table.schema.metadata.get("explorer");
  if (!text) throw new Error("the data of this timeline has no description: it was made by another version");
  const metadata = JSON.parse(text);
  if (metadata.version !== FORMAT_VERSION) {
    throw new Error(
      `expected timeline data of version ${FORMAT_VERSION} but got ${metadata.version}: process the profile again`,
    );
  }
  return { metadata, column: (name, empty) => table.getChild(name)?.toArray() ?? empty };
}

export function decodeSlices(bytes: Uint8Array): SliceColumns {
  const { metadata, column } = decode(bytes);
  const described = metadata as unknown as Pick<SliceColumns, "kind" | "end" | "lanes" | "names" | "colors">;
  return {
    ...described,
    base: BigInt(metadata.base as string),
    rows: (metadata.rows as number[] | undefined) ?? null,
    offsets: (metadata.offsets as number[] | undefined) ?? null,
    lane: column<Uint16Array | null>("lane", null),
    ts: column<Moments>("ts", new Uint32Array()),
    dur: column<Moments>("dur", new Uint32Array()),
    name: column<Uint16Array | Uint32Array>("name", new Uint16Array()),
    color: column("color", new Uint16Array()),
    row: column("row", new Uint32Array()),
    wait: column<Uint32Array | null>("wait", null),
  };
}

export function decodeCounters(bytes: Uint8Array): CounterColumns {
  const { metadata, column } = decode(bytes);
  return {
    series: metadata.series as SeriesInfo[],
    number: column("series", new Uint16Array()),
    ts: column("ts", new Float64Array()),
    value: column("value", new Float64Array()),
  };
}

export function decodeColors(bytes: Uint8Array): { colors: string[]; color: Uint16Array } {
  const { metadata, column } = decode(bytes);
  return { colors: metadata.colors as string[], color: column("color", new Uint16Array()) };
}

export function decodeOverview(bytes: Uint8Array): OverviewColumns {
  const { metadata, column } = decode(bytes);
  // Columns of different lengths: each is a list in the only row.
  const list = <T>(name: string) => (column<{ toArray(): T }[]>(name, [])[0] as { toArray(): T }).toArray();
  const described = metadata as unknown as Pick<OverviewColumns, "end" | "lanes" | "rows" | "colors" | "levels">;
  return {
    ...described,
    color: list<Uint16Array>("color"),
    share: list<Uint8Array>("share"),
    counters: {
      series: metadata.counters as SeriesInfo[],
      number: list<Uint16Array>("series"),
      ts: list<Float64Array>("ts"),
      value: list<Float64Array>("value"),
    },
  };
}

/** Buffers that a message can hand over instead of copying them. */
export function buffersOf(value: unknown, found = new Set<ArrayBuffer>()): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (Array.isArray(value)) {
    if (typeof value[0] === "object") for (const entry of value) buffersOf(entry, found);
  } else if (value && typeof value === "object") for (const entry of Object.values(value)) buffersOf(entry, found);
  return [...found];
}
