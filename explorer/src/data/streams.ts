// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { CounterColumns, OverviewColumns, SliceColumns } from "./drawn";

/** What the server sends for timelines. */
export interface Streams {
  slices: SliceColumns;
  counters: CounterColumns;
  colors: { colors: string[]; color: Uint16Array };
  overview: OverviewColumns;
}

/** Below this many events the slices are there as soon as an overview would be. */
const OVERVIEW_EVENTS = 50_000;
const DRAWN_TABLES = ["Instruction", "DmaPacketAggregated", "DmaPacket", "SemaphoreUpdate", "CcInstruction", "CcOp"];

/** Whether a device profile with these tables (rows by name) is painted as an overview first. */
export function hasOverview(tables: Record<string, number>): boolean {
  return DRAWN_TABLES.reduce((sum, name) => sum + (tables[name] ?? 0), 0) >= OVERVIEW_EVENTS;
}

interface Waiting {
  resolve(value: never): void;
  reject(error: Error): void;
}

/** Streams through the worker, each once: what has been asked for before the app was there is not asked for again. */
export class StreamReader {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private readonly waiting = new Map<number, Waiting>();
  private readonly ahead = new Map<string, Promise<unknown>>();
  private number = 0;
  private failure: Error | null = null;

  constructor() {
    this.worker.addEventListener("message", ({ data: { id, value, error } }) => {
      const waiting = this.waiting.get(id);
      this.waiting.delete(id);
      if (error === undefined) waiting?.resolve(value as never);
      else waiting?.reject(new Error(error));
    });
    // Nothing that the worker's own code lets through: its file is missing, or the browser refuses to run it.
    this.worker.addEventListener("error", (event) => {
      this.failure = new Error(
        `the worker that decodes the data does not run: ${event.message || "it cannot be loaded"}`,
      );
      for (const { reject } of this.waiting.values()) reject(this.failure);
      this.waiting.clear();
    });
  }

  static path(name: string, device: string, what: keyof Streams): string {
    return ["api", "profiles", name, device, "drawn", what].map(encodeURIComponent).join("/");
  }

  read<W extends keyof Streams>(path: string, what: W): Promise<Streams[W]> {
    const early = this.ahead.get(path);
    this.ahead.delete(path);
    if (early) return early as Promise<Streams[W]>;
    if (this.failure) return Promise.reject(this.failure);
    const id = ++this.number;
    // A worker's addresses are relative to its own file.
    this.worker.postMessage({ id, what, address: new URL(path, document.baseURI).href });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  readAhead(path: string, what: keyof Streams): void {
    const found = this.read(path, what);
    found.catch(() => undefined);
    this.ahead.set(path, found);
  }
}
