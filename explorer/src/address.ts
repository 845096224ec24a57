// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/**
 * Where the app is; kept in the address, so that it can be copied:
 * `#/p/PROFILE/DEVICE/analysis?t=START,END&sel=TABLE:ROW`, `#/compare?a=PROFILE/DEVICE&b=...`, `#/`.
 */
export interface Route {
  page: "profiles" | "profile" | "compare";
  profile: string;
  device: string;
  tab: "analysis" | "summary";
  query: Record<string, string>;
}

export function parseRoute(hash: string): Route {
  const [path, text = ""] = hash.replace(/^#/, "").split("?");
  const pieces = path.split("/").filter(Boolean).map(decodeURIComponent);
  const query = Object.fromEntries(new URLSearchParams(text));
  const route: Route = { page: "profiles", profile: "", device: "", tab: "analysis", query };
  if (pieces[0] === "p" && pieces[1]) {
    return {
      ...route,
      page: "profile",
      profile: pieces[1],
      device: pieces[2] ?? "",
      tab: pieces[3] === "summary" ? "summary" : "analysis",
    };
  }
  if (pieces[0] === "compare") return { ...route, page: "compare" };
  return route;
}

export function formatRoute(route: Partial<Route>): string {
  const text = new URLSearchParams(route.query ?? {}).toString();
  // Commas and colons are readable and allowed.
  const query = text ? `?${text.replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/")}` : "";
  if (route.page === "profile") {
    const pieces = ["p", route.profile ?? ""];
    if (route.device) pieces.push(route.device);
    if (route.device && route.tab === "summary") pieces.push("summary");
    return `#/${pieces.map(encodeURIComponent).join("/")}${query}`;
  }
  return route.page === "compare" ? `#/compare${query}` : `#/${query}`;
}
