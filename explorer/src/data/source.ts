// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { CounterColumns, OverviewColumns, SliceColumns } from "./drawn";

/** A row of a table as JSON carries it: identifiers are text. */
export type Row = Record<string, unknown> & { row: number };

export interface ProfileEntry {
  name: string;
  kind: "system" | "device" | "";
  status: string;
  message?: string;
  created?: string | number | null;
  tags: string[];
  favourite: boolean;
  folder?: string | null;
  source?: string | null;
  schema_version?: string | null;
  warnings: (string | { message: string; category?: string })[];
  devices: string[];
  has_system: boolean;
}

export interface ProfileDescription extends ProfileEntry {
  tables: Record<string, number>;
  device_tables: Record<string, Record<string, number>>;
  annotations: Annotation[];
}

export interface Annotation {
  id: string;
  device: string;
  name: string;
  ts: number;
  color: string;
}

export interface SearchResult {
  count: number;
  rows: Row[];
}

export interface Links {
  predecessors: Row[];
  successors: Row[];
}

export interface Chain {
  event: Row;
  upstream: Row[];
  downstream: Row[];
}

export interface Statistics {
  engines: Record<string, number | string | null>[];
  queues: Record<string, number | string | null>[];
  opcodes: Record<string, number | string | null>[];
}

export interface OperatorRow {
  layer: string;
  kernel: string;
  operator: string;
  instructions: number;
  time_ns: number;
  start_ts: number;
  end_ts: number;
  stack_frame_ids?: string | null;
  [column: string]: number | string | null | undefined;
}

export interface Line {
  file: string;
  line: number;
  function: string | null;
  instructions: number;
  time_ns: number;
  tensor_elements: number;
  start_ts: number;
  end_ts: number;
  frames: string;
}

export interface Frame {
  frame: string;
  file: string;
  function: string;
  line: number | null;
}

export interface Allocations {
  rows: Row[];
  partitions: number[];
  partition: number;
}

export interface RowOptions {
  limit?: number;
  order?: string;
  descending?: boolean;
  columns?: string[];
}

/**
 * Where a profile's data comes from: the server, or the HTML file that holds it. Every view asks through this.
 * `device` is `system` or the name of a device profile.
 */
export interface DataSource {
  readonly kind: "http" | "inline";
  readonly canWrite: boolean;
  profiles(): Promise<{ profiles: ProfileEntry[]; data_path: string }>;
  profile(name: string): Promise<ProfileDescription>;
  slices(name: string, device: string): Promise<SliceColumns>;
  counters(name: string, device: string): Promise<CounterColumns>;
  colors(name: string, device: string, by: string): Promise<{ colors: string[]; color: Uint16Array }>;
  /** A device profile at the resolution of a screen; null if its slices are there as fast. */
  overview(profile: ProfileDescription, device: string): Promise<OverviewColumns | null>;
  rows(name: string, device: string, table: string, options?: RowOptions): Promise<Row[]>;
  row(name: string, device: string, table: string, row: number): Promise<Row>;
  links(name: string, device: string, table: string, id: string): Promise<Links>;
  search(
    name: string,
    device: string,
    table: string,
    query: { field: string; text: string; exact?: boolean; limit?: number; offset?: number },
  ): Promise<SearchResult>;
  fields(name: string, device: string, table: string): Promise<Record<string, string>>;
  chain(name: string, device: string, row: number): Promise<Chain>;
  statistics(name: string, device: string, start?: number, end?: number, tracks?: string[]): Promise<Statistics>;
  operators(name: string, device: string): Promise<OperatorRow[]>;
  lines(name: string, device: string): Promise<Line[]>;
  stack(name: string, device: string, frames: string): Promise<Frame[]>;
  eventsOfFrames(name: string, device: string, frames: string[]): Promise<Row[]>;
  allocations(name: string, device: string, partition?: number): Promise<Allocations>;
  update(name: string, changes: { tags?: string[]; favourite?: boolean; folder?: string }): Promise<void>;
  remove(name: string): Promise<void>;
  saveAnnotations(name: string, annotations: Annotation[]): Promise<void>;
  upload(name: string, file: string, body: Blob, progress: (sent: number) => void): Promise<void>;
  process(name: string, options: { tags?: string[]; folder?: string }): Promise<void>;
}
