// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Row } from "../data/source";
import type { Session } from "../session";

/** The device profile of an execution: by its own name, by the model, or by the core if there is only one. */
export function deviceProfileOf(row: Row, devices: string[]): string[] {
  let extra: Record<string, unknown> = {};
  try {
    extra = JSON.parse(String(row.extra_attributes_json ?? "{}"));
  } catch {
    // Attributes that are no JSON name no model.
  }
  const named = devices.filter((name) => name === extra.device_profile_name);
  if (named.length) return named;
  const model = extra.model_id;
  const exact = devices.filter((name) => model !== undefined && name.endsWith(`_model_${model}`));
  if (exact.length) return exact.slice(0, 1);
  const core = extra.device_core_idx ?? row.nc_idx;
  const ofCore = devices.filter((name) => new RegExp(`_nc_${core}(_|$)`).test(name));
  // Another program's profile would be worse than none.
  return model === undefined && ofCore.length === 1 ? ofCore : [];
}

export interface DeviceEntry {
  name: string;
  summary: Row | undefined;
  /** Its executions in the capture, and their time with the fixed cost of each. */
  calls: number;
  total: number;
}

export interface Devices {
  entries: DeviceEntry[];
  executions: number;
  /** Of all executions, also those without a device profile. */
  total: number;
}

const PAGE = 5000;

/** The device profiles with what the system trace says of their executions, those that took longest first. */
export async function loadDevices(session: Session): Promise<Devices> {
  const { source, profile } = session;
  const sums = new Map<string, { calls: number; total: number }>();
  let executions = 0;
  let total = 0;
  for (let offset = 0, count = profile.tables.SystemProfileEvents ? 1 : 0; offset < count; offset += PAGE) {
    const found = await source.search(profile.name, "system", "SystemProfileEvents", {
      field: "name",
      text: "nc_exec_running",
      exact: true,
      limit: PAGE,
      offset,
    });
    executions = count = found.count;
    for (const row of found.rows) {
      const time = Number(row.duration_ns);
      total += time;
      for (const name of deviceProfileOf(row, profile.devices)) {
        const sum = sums.get(name) ?? { calls: 0, total: 0 };
        sums.set(name, { calls: sum.calls + 1, total: sum.total + time });
      }
    }
  }
  const entries = await Promise.all(
    profile.devices.map(async (name) => ({
      name,
      summary: profile.device_tables[name]?.Summary ? (await source.rows(profile.name, name, "Summary"))[0] : undefined,
      ...(sums.get(name) ?? { calls: 0, total: 0 }),
    })),
  );
  return { entries: entries.sort((a, b) => b.total - a.total), executions, total };
}
