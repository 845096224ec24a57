// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { Component, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { HttpSource } from "./data/http";
import type { DataSource } from "./data/source";
import "./styles.css";

declare const __SINGLE_FILE__: boolean;

class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="crash" role="alert">
        <h1>The page failed</h1>
        <p>{this.state.error.message}</p>
        <button type="button" onClick={() => location.reload()}>
          Load it again
        </button>
      </div>
    );
  }
}

async function start(): Promise<void> {
  let source: DataSource;
  if (__SINGLE_FILE__) {
    const { InlineSource } = await import("./data/inline");
    source = await InlineSource.open(document);
    const only = (await source.profiles()).profiles[0];
    if (!location.hash.startsWith("#/p/")) {
      history.replaceState(null, "", `#/p/${encodeURIComponent(only.name)}`);
      const { parseRoute, route } = await import("./route");
      route.set(parseRoute(location.hash));
    }
  } else {
    source = new HttpSource();
  }
  createRoot(document.getElementById("root")!).render(
    <StrictMode>
      <Boundary>
        <App source={source} />
      </Boundary>
    </StrictMode>,
  );
}

start().catch((error: Error) => {
  document.getElementById("root")!.textContent = `Neuron Explorer cannot start: ${error.message}`;
});
