// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { formatRoute, parseRoute, type Route } from "./address";
import { Store } from "./store";

export { formatRoute, parseRoute, type Route };

export const route = new Store<Route>(parseRoute(location.hash));

let written = location.hash;
window.addEventListener("hashchange", () => {
  if (location.hash !== written) {
    written = location.hash;
    route.set(parseRoute(location.hash));
  }
});

export function go(to: Partial<Route>): void {
  written = formatRoute(to);
  history.pushState(null, "", written);
  route.set(parseRoute(written));
}

/** Notes in the address what is shown, without leaving a step in the browser's history. */
export function note(query: Record<string, string | undefined>): void {
  const now = parseRoute(location.hash);
  const merged: Record<string, string> = { ...now.query };
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) delete merged[name];
    else merged[name] = value;
  }
  written = formatRoute({ ...now, query: merged });
  if (written !== location.hash) history.replaceState(null, "", written);
}
