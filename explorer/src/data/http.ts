// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Early } from "./early";
import type { DataSource, ProfileDescription, ProfileEntry } from "./source";
import { hasOverview, StreamReader } from "./streams";

async function answer(response: Response): Promise<Response> {
  if (response.ok) return response;
  let text = `${response.status} ${response.statusText}`;
  try {
    text = ((await response.json()) as { error?: string }).error ?? text;
  } catch {
    // An answer without a body of ours keeps the status line.
  }
  throw new Error(text);
}

function query(parameters: Record<string, string | number | boolean | undefined | null>): string {
  const entries = Object.entries(parameters).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  return entries.length ? `?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}` : "";
}

export class HttpSource implements DataSource {
  readonly kind = "http";
  readonly canWrite = true;
  private readonly streams: StreamReader;
  private early: Early["profile"];

  constructor({ streams, profile }: Early) {
    this.streams = streams;
    this.early = profile;
  }

  private path(name: string, ...pieces: string[]): string {
    return ["api", "profiles", name, ...pieces].map(encodeURIComponent).join("/");
  }

  private async json<T>(path: string): Promise<T> {
    let response: Response;
    try {
      response = await fetch(path, { headers: { Accept: "application/json" } });
    } catch {
      throw new Error("the server does not answer: is `neuron-explorer view` still running?");
    }
    return (await answer(response)).json() as Promise<T>;
  }

  private async change(method: string, path: string, body?: unknown): Promise<void> {
    const headers = { "Content-Type": "application/json" };
    await answer(await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
  }

  profiles() {
    return this.json<{ profiles: ProfileEntry[]; data_path: string }>("api/profiles");
  }

  profile(name: string) {
    const { early } = this;
    this.early = null;
    if (early?.name === name) return early.description;
    return this.json<ProfileDescription>(this.path(name));
  }

  slices(name: string, device: string) {
    return this.streams.read(StreamReader.path(name, device, "slices"), "slices");
  }

  counters(name: string, device: string) {
    return this.streams.read(StreamReader.path(name, device, "counters"), "counters");
  }

  colors(name: string, device: string, by: string) {
    return this.streams.read(StreamReader.path(name, device, "colors") + query({ by }), "colors");
  }

  async overview(profile: ProfileDescription, device: string) {
    if (!hasOverview(profile.device_tables[device] ?? {})) return null;
    return this.streams.read(StreamReader.path(profile.name, device, "overview"), "overview");
  }

  async rows(
    name: string,
    device: string,
    table: string,
    options: { limit?: number; order?: string; descending?: boolean; columns?: string[] } = {},
  ) {
    const { columns, descending, ...rest } = options;
    const text = query({ ...rest, columns: columns?.join(","), descending: descending ? 1 : undefined });
    return (await this.json<{ rows: never[] }>(this.path(name, device, "rows", table) + text)).rows;
  }

  row(name: string, device: string, table: string, row: number) {
    return this.json<never>(this.path(name, device, "row", table) + query({ row }));
  }

  links(name: string, device: string, table: string, id: string) {
    return this.json<never>(this.path(name, device, "links", table) + query({ id }));
  }

  search(
    name: string,
    device: string,
    table: string,
    { exact, ...rest }: { field: string; text: string; exact?: boolean; limit?: number; offset?: number },
  ) {
    const text = query({ ...rest, exact: exact ? 1 : undefined });
    return this.json<never>(this.path(name, device, "search", table) + text);
  }

  fields(name: string, device: string, table: string) {
    return this.json<Record<string, string>>(this.path(name, device, "fields", table));
  }

  chain(name: string, device: string, row: number) {
    return this.json<never>(this.path(name, device, "chain") + query({ row }));
  }

  private view<T>(name: string, device: string, view: string, parameters = {}): Promise<T> {
    return this.json<T>(this.path(name, device, "view", view) + query(parameters));
  }

  statistics(name: string, device: string, start?: number, end?: number, tracks?: string[]) {
    const window = query({ start: start && Math.floor(start), end: end && Math.ceil(end) });
    const text = (tracks ?? []).map((track) => `track=${encodeURIComponent(track)}`).join("&");
    const path = this.path(name, device, "view", "statistics") + window;
    return this.json<never>(text ? path + (window ? "&" : "?") + text : path);
  }

  async operators(name: string, device: string) {
    return (await this.view<{ rows: never[] }>(name, device, "operators")).rows;
  }

  async lines(name: string, device: string) {
    return (await this.view<{ rows: never[] }>(name, device, "lines")).rows;
  }

  async stack(name: string, device: string, frames: string) {
    return (await this.view<{ frames: never[] }>(name, device, "stack", { frames })).frames;
  }

  async eventsOfFrames(name: string, device: string, frames: string[]) {
    return (await this.view<{ rows: never[] }>(name, device, "frames", { frames: frames.join(",") })).rows;
  }

  allocations(name: string, device: string, partition?: number) {
    return this.view<never>(name, device, "allocations", { partition });
  }

  update(name: string, changes: { tags?: string[]; favourite?: boolean; folder?: string }) {
    return this.change("PATCH", this.path(name), changes);
  }

  remove(name: string) {
    return this.change("DELETE", this.path(name));
  }

  saveAnnotations(name: string, annotations: unknown[]) {
    return this.change("PUT", this.path(name, "annotations"), annotations);
  }

  upload(name: string, file: string, body: Blob, progress: (sent: number) => void): Promise<void> {
    // fetch() tells nothing while it sends.
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PUT", `${this.path(name, "files")}/${file.split("/").map(encodeURIComponent).join("/")}`);
      request.upload.onprogress = (event) => progress(event.loaded);
      request.onerror = () => reject(new Error(`${file} could not be sent: the server does not answer`));
      request.onload = () => {
        if (request.status < 300) return resolve();
        let text = `${request.status} ${request.statusText}`;
        try {
          text = JSON.parse(request.responseText).error ?? text;
        } catch {
          // Keeps the status line.
        }
        reject(new Error(text));
      };
      request.send(body);
    });
  }

  process(name: string, options: { tags?: string[]; folder?: string }) {
    return this.change("POST", this.path(name, "process"), options);
  }
}
