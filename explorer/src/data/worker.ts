// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/** Fetches and decodes what timelines draw, beside the thread of the page: a profile has tens of megabytes of it. */

import { indexesOf } from "../timeline/slices";
import { buffersOf, decodeColors, decodeCounters, decodeOverview, decodeSlices } from "./drawn";
import type { Streams } from "./streams";

const DECODERS: { [W in keyof Streams]: (bytes: Uint8Array) => Streams[W] } = {
  slices: (bytes) => {
    const columns = decodeSlices(bytes);
    return columns.offsets ? { ...columns, indexes: indexesOf(columns.dur) } : columns;
  },
  counters: decodeCounters,
  colors: decodeColors,
  overview: decodeOverview,
};

async function read(address: string, what: keyof Streams): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(address);
  } catch {
    throw new Error("the server does not answer: is `neuron-explorer view` still running?");
  }
  if (!response.ok) {
    const text = await response.text();
    let error = `${response.status} ${response.statusText}`;
    try {
      error = JSON.parse(text).error ?? error;
    } catch {
      // An answer without a body of ours keeps the status line.
    }
    throw new Error(error);
  }
  return DECODERS[what](new Uint8Array(await response.arrayBuffer()));
}

self.addEventListener("message", ({ data: { id, address, what } }: MessageEvent) => {
  read(address, what).then(
    (value) => self.postMessage({ id, value }, { transfer: buffersOf(value) }),
    (error: Error) => self.postMessage({ id, error: error.message }),
  );
});
