// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { askEarly } from "./data/early";
import "./styles.css";

declare const __SINGLE_FILE__: boolean;

async function openFile(): Promise<void> {
  const [{ InlineSource }, { parseRoute, route }, { start }] = await Promise.all([
    import("./data/inline"),
    import("./route"),
    import("./start"),
  ]);
  const source = await InlineSource.open(document);
  const only = (await source.profiles()).profiles[0];
  if (!location.hash.startsWith("#/p/")) {
    history.replaceState(null, "", `#/p/${encodeURIComponent(only.name)}`);
    route.set(parseRoute(location.hash));
  }
  start(source);
}

/** This file is small, so that the data is asked for before the app is there. */
async function openPage(): Promise<void> {
  const early = askEarly(location.hash);
  const [{ start }, { HttpSource }] = await Promise.all([import("./start"), import("./data/http")]);
  start(new HttpSource(early));
}

(__SINGLE_FILE__ ? openFile() : openPage()).catch((error: Error) => {
  document.getElementById("root")!.textContent = `Neuron Explorer cannot start: ${error.message}`;
});
