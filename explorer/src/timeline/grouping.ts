// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { LaneKey, SliceColumns } from "../data/drawn";
import type { LanePlan } from "./slices";

export const GROUPINGS = ["Default", "CPU vs Device", "NeuronCore", "Thread", "Process", "Instance"] as const;
export type Grouping = (typeof GROUPINGS)[number];

const SOURCES: Record<string, number> = { framework: 0, neuron_rt: 1, neuron_hw: 2 };

/** Label of the lane that events of one origin belong to (profiling.md, section 6.1). */
export function laneLabel(key: LaneKey, grouping: Grouping): string {
  const instance = key.instance_id ?? "instance";
  const process = `${instance}/PID:${key.process_id ?? 0}`;
  const source = key.trace_event_source ?? "framework";
  if (key.transfer && (grouping === "Default" || grouping === "NeuronCore")) {
    return `${instance}/NC:${key.nc_idx ?? 0}/${key.transfer}_transfers`;
  }
  switch (grouping) {
    case "Default":
      if (source === "neuron_hw") {
        const physical = key.pcore_idx === null || key.pcore_idx === undefined ? "" : `:${key.pcore_idx}`;
        return `${process}/neuron_hw/NC${key.nc_idx ?? 0}${physical}`;
      }
      if (source === "neuron_rt") return `${process}/neuron_rt/NC:${key.nc_idx ?? 0}`;
      if (key.framework_stream_id) return `${process}/framework/Stream:${key.framework_stream_id}`;
      return `${process}/framework/TID:${key.thread_id ?? 0}`;
    case "CPU vs Device":
      if (source === "neuron_hw") return `${process}/Worker:${key.worker_gid ?? 0}/neuron_hw`;
      return `${process}/TID:${key.thread_id ?? 0}/neuron_rt`;
    case "NeuronCore":
      return key.nc_idx === null || key.nc_idx === undefined ? `${instance}/host` : `${instance}/NC:${key.nc_idx}`;
    case "Thread":
      return `${process}/TID:${key.thread_id ?? 0}`;
    case "Process":
      return process;
    case "Instance":
      return instance;
  }
}

function rank(key: LaneKey): number {
  if (key.transfer) return 3;
  const source = SOURCES[key.trace_event_source ?? "framework"] ?? 0;
  return source + (source === 0 && key.framework_stream_id ? 0.5 : 0);
}

/** Merges the origins of a system profile into lanes. */
export function groupLanes(columns: SliceColumns, grouping: Grouping): LanePlan {
  const found = new Map<string, number>();
  for (const key of columns.lanes) {
    const label = laneLabel(key, grouping);
    found.set(label, Math.min(found.get(label) ?? 9, rank(key)));
  }
  const labels = [...found.keys()].sort(
    (a, b) => found.get(a)! - found.get(b)! || a.localeCompare(b, "en", { numeric: true }),
  );
  const place = new Map(labels.map((label, index) => [label, index]));
  return {
    lanes: labels.map((label) => ({
      label,
      group: label.endsWith("_transfers") ? "Transfers" : "System",
      table: "SystemProfileEvents",
    })),
    laneOf: Int32Array.from(columns.lanes, (key) => place.get(laneLabel(key, grouping))!),
  };
}
