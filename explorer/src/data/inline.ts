// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { type Table, tableFromIPC } from "apache-arrow";
import { decodeColors, decodeCounters, decodeSlices } from "./drawn";
import type {
  Chain,
  DataSource,
  Frame,
  Line,
  Links,
  OperatorRow,
  ProfileDescription,
  Row,
  SearchResult,
  Statistics,
} from "./source";

/** What the HTML file holds, as python/neuron_explorer/html.py writes it: numbers of blocks by their use. */
interface Contents {
  version: number;
  profile: ProfileDescription;
  devices: Record<
    string,
    {
      drawn: Record<string, number>;
      tables: Record<string, number>;
      operators: OperatorRow[];
      lines: Line[];
      left_out: string[];
    }
  >;
}

export const CONTENTS_VERSION = 1;
const EXACT = 2 ** 53;

declare global {
  interface Uint8ArrayConstructor {
    fromBase64?(text: string): Uint8Array;
  }
}

function fromBase64(text: string): Uint8Array {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpacked(block: HTMLElement): Promise<Uint8Array> {
  const packed = fromBase64((block.textContent ?? "").trim());
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function isIdentifier(name: string): boolean {
  return name === "id" || name.endsWith("_id");
}

/** As the server's JSON: identifiers and integers that a double cannot hold are text. */
function plain(name: string, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === "bigint") {
    const number = Number(value);
    return isIdentifier(name) || Math.abs(number) >= EXACT ? String(value) : number;
  }
  if (typeof value === "number") return isIdentifier(name) ? String(value) : value;
  if (typeof value === "object" && Symbol.iterator in value)
    return [...(value as Iterable<unknown>)].map((entry) => plain(name, entry));
  return value;
}

function record(table: Table, index: number, columns?: readonly string[]): Row {
  const row: Row = { row: index };
  for (const field of table.schema.fields) {
    if (columns && !columns.includes(field.name)) continue;
    row[field.name] = plain(field.name, table.getChild(field.name)!.get(index));
  }
  return row;
}

function typeName(type: string): string {
  if (type.startsWith("Dictionary") || type.startsWith("Utf8")) return "string";
  if (type.startsWith("Float")) return "double";
  return type.toLowerCase();
}

type Condition = (value: unknown) => boolean;

/** The server's search conditions (server/query.py). */
export function condition(type: string, text: string, exact: boolean): Condition {
  if (/^(u?int|float|double)/.test(type)) {
    const wanted = text.trim().replaceAll("_", "").replaceAll(",", "");
    const number = String.raw`-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`;
    const range = new RegExp(`^(${number})\\s*\\.\\.\\s*(${number})$`).exec(wanted);
    if (range) return (value) => Number(value) >= Number(range[1]) && Number(value) <= Number(range[2]);
    const compared = new RegExp(`^(>=|<=|>|<|=)?\\s*(${number})$`).exec(wanted);
    if (!compared) throw new Error(`expected a number, a range \`a..b\`, \`>a\` or \`<a\` but got '${text}'`);
    const to = Number(compared[2]);
    const test: Record<string, (v: number) => boolean> = {
      ">=": (v) => v >= to,
      "<=": (v) => v <= to,
      ">": (v) => v > to,
      "<": (v) => v < to,
      "=": (v) => v === to,
    };
    return (value) => test[compared[1] ?? "="](Number(value));
  }
  if (exact) return (value) => String(value) === text;
  const wanted = text.toLowerCase();
  return (value) => String(value).toLowerCase().includes(wanted);
}

const READ_ONLY = "this file holds the profile as it was exported: nothing in it can be changed";

/** A profile inside the page: tables are unpacked when a view first asks for them. */
export class InlineSource implements DataSource {
  readonly kind = "inline";
  readonly canWrite = false;
  private readonly contents: Contents;
  private readonly page: Document;
  private readonly tables = new Map<number, Promise<Table>>();

  private constructor(page: Document, contents: Contents) {
    this.page = page;
    this.contents = contents;
  }

  static async open(page: Document): Promise<InlineSource> {
    const block = page.getElementById("explorer-contents");
    if (!block) throw new Error("the file holds no profile");
    const contents = JSON.parse(new TextDecoder().decode(await unpacked(block))) as Contents;
    if (contents.version !== CONTENTS_VERSION)
      throw new Error(`expected contents of version ${CONTENTS_VERSION} but got ${contents.version}`);
    return new InlineSource(page, contents);
  }

  private block(number: number): HTMLElement {
    const block = this.page.getElementById(`explorer-${number}`);
    if (!block) throw new Error(`the file is cut short: block ${number} is missing`);
    return block;
  }

  private device(device: string) {
    const found = this.contents.devices[device];
    if (!found) throw new Error(`this file holds no part called ${device}`);
    return found;
  }

  private table(device: string, name: string): Promise<Table> {
    const number = this.device(device).tables[name];
    if (number === undefined) {
      const reason = this.device(device).left_out.includes(name)
        ? "was left out of this file to keep it small"
        : "is not in this profile";
      return Promise.reject(new Error(`table ${name} ${reason}`));
    }
    let table = this.tables.get(number);
    if (!table) {
      table = unpacked(this.block(number)).then((bytes) => tableFromIPC(bytes));
      this.tables.set(number, table);
    }
    return table;
  }

  async profiles() {
    return { profiles: [this.contents.profile], data_path: "" };
  }

  async profile() {
    return this.contents.profile;
  }

  async slices(_: string, device: string) {
    return decodeSlices(await unpacked(this.block(this.device(device).drawn.slices)));
  }

  async counters(_: string, device: string) {
    return decodeCounters(await unpacked(this.block(this.device(device).drawn.counters)));
  }

  async colors(_: string, device: string, by: string) {
    const number = this.device(device).drawn[`colors-${by}`];
    if (number === undefined) throw new Error(`colours by ${by} were left out of this file`);
    return decodeColors(await unpacked(this.block(number)));
  }

  async overview() {
    return null;
  }

  async rows(
    _: string,
    device: string,
    name: string,
    options: { limit?: number; order?: string; descending?: boolean; columns?: string[] } = {},
  ) {
    const table = await this.table(device, name);
    const { limit = 1000, order, descending, columns } = options;
    let indices = Array.from({ length: order ? table.numRows : Math.min(limit, table.numRows) }, (_, i) => i);
    if (order) {
      const column = table.getChild(order)!;
      const key = indices.map((i) => plain(order, column.get(i)) as number);
      indices.sort((a, b) => (descending ? -1 : 1) * (key[a] < key[b] ? -1 : key[a] > key[b] ? 1 : 0));
      indices = indices.slice(0, limit);
    }
    return indices.map((i) => record(table, i, columns));
  }

  async row(_: string, device: string, name: string, row: number): Promise<Row> {
    const table = await this.table(device, name);
    if (row >= table.numRows) throw new Error(`table ${name} has no row ${row}`);
    return record(table, row);
  }

  private async indexOf(device: string, name: string): Promise<Map<string, number>> {
    const column = (await this.table(device, name)).getChild("id");
    const index = new Map<string, number>();
    if (column) for (let i = 0; i < column.length; i++) index.set(String(column.get(i)), i);
    return index;
  }

  async links(_: string, device: string, name: string, id: string): Promise<Links> {
    const result: Links = { predecessors: [], successors: [] };
    if (this.device(device).tables.Flow === undefined) return result;
    const flow = await this.table(device, "Flow");
    const column = (wanted: string) => flow.getChild(wanted)!;
    const indexes = new Map<string, Map<string, number>>();
    const add = async (list: Row[], edge: number, side: "in" | "out") => {
      const other = String(column(`${side}_table`).get(edge));
      if (this.device(device).tables[other] === undefined) return;
      let index = indexes.get(other);
      if (!index) {
        index = await this.indexOf(device, other);
        indexes.set(other, index);
      }
      const at = index.get(String(column(`${side}_id`).get(edge)));
      if (at === undefined) return;
      const row = record(await this.table(device, other), at);
      list.push({ ...row, table_name: other, dependency_type: flow.getChild("dependency_type")?.get(edge) ?? null });
    };
    const wanted = BigInt(id);
    const ins = column("in_id");
    const outs = column("out_id");
    for (let edge = 0; edge < flow.numRows; edge++) {
      if (BigInt(outs.get(edge)) === wanted && column("out_table").get(edge) === name)
        await add(result.predecessors, edge, "in");
      if (BigInt(ins.get(edge)) === wanted && column("in_table").get(edge) === name)
        await add(result.successors, edge, "out");
    }
    return result;
  }

  async search(
    _: string,
    device: string,
    name: string,
    query: { field: string; text: string; exact?: boolean; limit?: number; offset?: number },
  ): Promise<SearchResult> {
    const table = await this.table(device, name);
    const column = table.getChild(query.field);
    if (!column) throw new Error(`table ${name} has no column '${query.field}' in this file`);
    const matches = condition(typeName(String(column.type)), query.text, query.exact ?? false);
    const found: number[] = [];
    for (let i = 0; i < table.numRows; i++) {
      const value = column.get(i);
      if (value !== null && matches(value)) found.push(i);
    }
    const start = table.getChild("start_ts") ?? table.getChild("timestamp");
    if (start) {
      const key = new Map(found.map((i) => [i, Number(start.get(i))]));
      found.sort((a, b) => key.get(a)! - key.get(b)!);
    }
    const { offset = 0, limit = 200 } = query;
    return { count: found.length, rows: found.slice(offset, offset + limit).map((i) => record(table, i)) };
  }

  async fields(_: string, device: string, name: string) {
    const table = await this.table(device, name);
    return Object.fromEntries(table.schema.fields.map((field) => [field.name, typeName(String(field.type))]));
  }

  async chain(profile: string, device: string, row: number): Promise<Chain> {
    const table = await this.table(device, "SystemProfileEvents");
    const event = record(table, row);
    const linked = await this.links(profile, device, "SystemProfileEvents", String(event.id));
    if (linked.predecessors.length || linked.successors.length) {
      return { event, upstream: linked.predecessors, downstream: linked.successors };
    }
    const flows = new Set((event.flow_id as string[] | null) ?? []);
    const column = table.getChild("flow_id");
    const order: Record<string, number> = { framework: 0, neuron_rt: 1, neuron_hw: 2 };
    const place = (entry: Row) => [order[String(entry.trace_event_source)] ?? 0, Number(entry.start_ts)];
    const here = place(event);
    const chain: Chain = { event, upstream: [], downstream: [] };
    if (!flows.size || !column) return chain;
    for (let i = 0; i < table.numRows; i++) {
      if (i === row) continue;
      const own = column.get(i);
      if (!own || ![...own].some((flow: unknown) => flows.has(String(flow)))) continue;
      const other = record(table, i);
      const there = place(other);
      const before = there[0] < here[0] || (there[0] === here[0] && there[1] < here[1]);
      (before ? chain.upstream : chain.downstream).push(other);
      if (chain.upstream.length + chain.downstream.length >= 200) break;
    }
    return chain;
  }

  async statistics(_: string, device: string, start?: number, end?: number, tracks?: string[]): Promise<Statistics> {
    const result: Statistics = { engines: [], queues: [], opcodes: [] };
    const wanted = tracks && new Set(tracks);
    const held = this.device(device).tables;
    const inside = (from: number, to: number) =>
      start === undefined || end === undefined ? to - from : Math.max(0, Math.min(to, end) - Math.max(from, start));
    const touches = (from: number, to: number) =>
      start === undefined || end === undefined || (from < end && to > start);
    if (held.Instruction !== undefined) {
      const table = await this.table(device, "Instruction");
      const get = (name: string) => table.getChild(name);
      const sums = [
        "raw_flops",
        "flops_transpose",
        "hbm_read_bytes",
        "hbm_write_bytes",
        "sbuf_read_bytes",
        "sbuf_write_bytes",
        "spill_save_bytes",
        "spill_reload_bytes",
      ].filter((name) => get(name));
      const engines = new Map<string, Record<string, number | string>>();
      const opcodes = new Map<string, { engine: string; opcode: string; times: number[]; time: number }>();
      const [from, to, engine, track, opcode] = [
        get("start_ts")!,
        get("end_ts")!,
        get("engine")!,
        get("timeline_track"),
        get("opcode")!,
      ];
      for (let i = 0; i < table.numRows; i++) {
        const a = Number(from.get(i));
        const b = Number(to.get(i));
        if (!touches(a, b)) continue;
        const lane = String(track?.get(i) ?? engine.get(i));
        if (wanted && !wanted.has(lane)) continue;
        const time = inside(a, b);
        let sum = engines.get(lane);
        if (!sum) {
          sum = { track: lane, instructions: 0, time_ns: 0 };
          for (const name of sums) sum[name] = 0;
          engines.set(lane, sum);
        }
        sum.instructions = Number(sum.instructions) + 1;
        sum.time_ns = Number(sum.time_ns) + time;
        for (const name of sums) sum[name] = Number(sum[name]) + Number(get(name)!.get(i) ?? 0);
        const key = `${engine.get(i)} ${opcode.get(i)}`;
        let entry = opcodes.get(key);
        if (!entry) {
          entry = { engine: String(engine.get(i)), opcode: String(opcode.get(i)), times: [], time: 0 };
          opcodes.set(key, entry);
        }
        entry.times.push(b - a);
        entry.time += time;
      }
      result.engines = [...engines.values()].sort((a, b) => String(a.track).localeCompare(String(b.track)));
      result.opcodes = [...opcodes.values()]
        .map(({ engine: name, opcode: code, times, time }) => {
          times.sort((a, b) => a - b);
          const middle = times.length >> 1;
          const median = times.length % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
          return {
            engine: name,
            opcode: code,
            instructions: times.length,
            time_ns: time,
            median_ns: median,
            longest_ns: times[times.length - 1],
          };
        })
        .sort((a, b) => b.time_ns - a.time_ns)
        .slice(0, 100);
    }
    if (held.DmaPacketAggregated !== undefined) {
      const table = await this.table(device, "DmaPacketAggregated");
      const queues = new Map<
        string,
        { track: string; transfers: number; time_ns: number; bytes: number; average_bytes: number }
      >();
      const [from, to, queue, bytes] = ["start_ts", "end_ts", "queue_name", "transfer_bytes"].map(
        (name) => table.getChild(name)!,
      );
      for (let i = 0; i < table.numRows; i++) {
        const a = Number(from.get(i));
        const b = Number(to.get(i));
        const lane = String(queue.get(i));
        if (!touches(a, b) || (wanted && !wanted.has(lane))) continue;
        const sum = queues.get(lane) ?? { track: lane, transfers: 0, time_ns: 0, bytes: 0, average_bytes: 0 };
        sum.transfers++;
        sum.time_ns += inside(a, b);
        sum.bytes += Number(bytes.get(i));
        sum.average_bytes = sum.bytes / sum.transfers;
        queues.set(lane, sum);
      }
      result.queues = [...queues.values()].sort((a, b) => b.bytes - a.bytes);
    }
    return result;
  }

  async operators(_: string, device: string) {
    return this.device(device).operators;
  }

  async lines(_: string, device: string) {
    return this.device(device).lines;
  }

  async stack(profile: string, device: string, frames: string): Promise<Frame[]> {
    if (this.device(device).tables.StackFrame === undefined) return [];
    const read = async (name: string) => {
      if (this.device(device).tables[name] === undefined) return new Map<string, Row>();
      const rows = await this.rows(profile, device, name, { limit: 100000 });
      return new Map(rows.map((row) => [String(row.id), row]));
    };
    const [known, places, files, functions] = await Promise.all(
      ["StackFrame", "StackFrameFileLocation", "StackFrameFileName", "StackFrameFunctionName"].map(read),
    );
    const result: Frame[] = [];
    const seen = new Set<string>();
    for (let frame of frames.match(/[^\s,[\]]+/g) ?? []) {
      while (known.has(frame) && !seen.has(frame) && result.length < 200) {
        seen.add(frame);
        const entry = known.get(frame)!;
        const place = places.get(String(entry.file_location_id));
        result.push({
          frame,
          file: String(files.get(String(place?.file_name_id))?.name ?? ""),
          function: String(functions.get(String(place?.function_name_id))?.name ?? ""),
          line: place ? Number(place.line_number) : null,
        });
        frame = String(entry.parent_frame_id ?? "");
      }
    }
    return result;
  }

  async eventsOfFrames(_: string, device: string, frames: string[]): Promise<Row[]> {
    const table = await this.table(device, "Instruction");
    const column = table.getChild("stack_frame_ids");
    if (!column) return [];
    const wanted = new Set(frames);
    const known = new Map<string, boolean>();
    const found: Row[] = [];
    for (let i = 0; i < table.numRows && found.length < 2000; i++) {
      const text = column.get(i) as string | null;
      if (!text) continue;
      let match = known.get(text);
      if (match === undefined) {
        match = (text.match(/\d+/g) ?? []).some((frame) => wanted.has(frame));
        known.set(text, match);
      }
      if (match) found.push(record(table, i, ["id", "engine", "opcode", "start_ts", "end_ts"]));
    }
    return found.sort((a, b) => Number(a.start_ts) - Number(b.start_ts));
  }

  async allocations(_: string, device: string, partition?: number) {
    const table = await this.table(device, "SbufAllocation");
    const column = table.getChild("partition")!;
    const partitions = [...new Set(Array.from({ length: table.numRows }, (_, i) => Number(column.get(i))))].sort(
      (a, b) => a - b,
    );
    const chosen = partition ?? partitions[0] ?? 0;
    const rows: Row[] = [];
    for (let i = 0; i < table.numRows && rows.length < 50000; i++)
      if (Number(column.get(i)) === chosen) rows.push(record(table, i));
    return { rows, partitions, partition: chosen };
  }

  async update(): Promise<void> {
    throw new Error(READ_ONLY);
  }
  async remove(): Promise<void> {
    throw new Error(READ_ONLY);
  }
  async saveAnnotations(): Promise<void> {
    throw new Error(READ_ONLY);
  }
  async upload(): Promise<void> {
    throw new Error(READ_ONLY);
  }
  async process(): Promise<void> {
    throw new Error(READ_ONLY);
  }
}
