// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { parseRoute } from "../address";
import type { ProfileDescription } from "./source";
import { hasOverview, StreamReader } from "./streams";

/** What the address asks for, on its way while the app itself is still being loaded. */
export interface Early {
  streams: StreamReader;
  profile: { name: string; description: Promise<ProfileDescription> } | null;
}

export function askEarly(hash: string): Early {
  const streams = new StreamReader();
  const { page, profile: name, device } = parseRoute(hash);
  if (page !== "profile") return { streams, profile: null };
  const description = fetch(`api/profiles/${encodeURIComponent(name)}`).then(async (response) => {
    const found = await response.json();
    if (!response.ok) throw new Error(found.error ?? response.statusText);
    return found as ProfileDescription;
  });
  description.then(
    (profile) => {
      const chosen = device || (profile.has_system ? "system" : profile.devices[0]);
      if (!chosen) return;
      const overview = hasOverview(profile.device_tables[chosen] ?? {});
      for (const what of overview ? (["overview"] as const) : (["slices", "counters"] as const))
        streams.readAhead(StreamReader.path(name, chosen, what), what);
    },
    () => undefined,
  );
  return { streams, profile: { name, description } };
}
