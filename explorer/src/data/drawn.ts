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

/** Columns of a `slices` stream (python/neuron_explorer/drawing.py), sorted by lane and start. */
export interface SliceColumns {
  kind: "system" | "device";
  base: bigint;
  end: number;
  lanes: LaneKey[];
  names: string[];
  colors: string[];
  lane: Uint16Array;
  ts: Float64Array;
  dur: Uint32Array | Float64Array;
  name: Uint32Array;
  color: Uint16Array;
  row: Uint32Array;
  wait: Uint32Array | null;
}

export interface SeriesInfo {
  label: string;
  group: string;
  unit: string;
  style: "step" | "line" | "area";
  max: number | null;
  hidden: boolean;
}

export interface CounterColumns {
  series: SeriesInfo[];
  number: Uint16Array;
  ts: Float64Array;
  value: Float64Array;
}

export const FORMAT_VERSION = 1;

function decode(bytes: Uint8Array): { metadata: Record<string, unknown>; column: (name: string) => unknown } {
  const table = tableFromIPC(bytes);
  const text = table.schema.metadata.get("explorer");
  if (!text) throw new Error("the data of this timeline has no description: it was made by another version");
  const metadata = JSON.parse(text);
  if (metadata.version !== FORMAT_VERSION) {
    throw new Error(
      `expected timeline data of version ${FORMAT_VERSION} but got ${metadata.version}: process the profile again`,
    );
  }
  return { metadata, column: (name) => table.getChild(name)?.toArray() ?? null };
}

export function decodeSlices(bytes: Uint8Array): SliceColumns {
  const { metadata, column } = decode(bytes);
  return {
    ...(metadata as { kind: "system" | "device"; end: number; lanes: LaneKey[]; names: string[]; colors: string[] }),
    base: BigInt(metadata.base as string),
    lane: (column("lane") ?? new Uint16Array()) as Uint16Array,
    ts: (column("ts") ?? new Float64Array()) as Float64Array,
    dur: (column("dur") ?? new Uint32Array()) as Uint32Array,
    name: (column("name") ?? new Uint32Array()) as Uint32Array,
    color: (column("color") ?? new Uint16Array()) as Uint16Array,
    row: (column("row") ?? new Uint32Array()) as Uint32Array,
    wait: column("wait") as Uint32Array | null,
  };
}

export function decodeCounters(bytes: Uint8Array): CounterColumns {
  const { metadata, column } = decode(bytes);
  return {
    series: metadata.series as SeriesInfo[],
    number: (column("series") ?? new Uint16Array()) as Uint16Array,
    ts: (column("ts") ?? new Float64Array()) as Float64Array,
    value: (column("value") ?? new Float64Array()) as Float64Array,
  };
}

export function decodeColors(bytes: Uint8Array): { colors: string[]; color: Uint16Array } {
  const { metadata, column } = decode(bytes);
  return { colors: metadata.colors as string[], color: (column("color") ?? new Uint16Array()) as Uint16Array };
}
