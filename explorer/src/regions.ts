// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Row } from "./data/source";
import { descendants, type TreeNode } from "./tree";

/** A named stretch of a device profile's time, in ns from its start. */
export interface Region {
  /** Its place among all regions of the generator, which a filter does not change. */
  id: string;
  name: string;
  start: number;
  end: number;
}

export const GENERATORS = ["none", "kernels", "hierarchy", "collectives"] as const;
export type Generator = (typeof GENERATORS)[number];

/** What a generator made, and how many levels the hierarchy has (0 for the others). */
export interface GeneratedRegions {
  regions: Region[];
  levels: number;
}

/** What makes the regions: one generator, and which of its regions are meant. */
export interface RegionChoice {
  generator: Generator;
  /** Level of the hierarchy, 0 for its roots. */
  level: number;
  /** Part of the name, upper or lower case alike. */
  text: string;
  /** Every how-manieth region is meant, from which on, and how many at most (0: all). */
  stride: number;
  offset: number;
  count: number;
}

/** The menu lists every level up to the chosen one, and anybody can write an address. */
const DEEPEST = 99;

export const NO_REGIONS: RegionChoice = { generator: "none", level: 0, text: "", stride: 1, offset: 0, count: 0 };

function numbered(parts: { name: string; start: number; end: number }[]): Region[] {
  return parts
    .filter((part) => part.end > part.start)
    .sort((a, b) => a.start - b.start || b.end - a.end)
    .map((part, index) => ({ ...part, id: String(index) }));
}

/** Executions of kernels (rows of KernelRoofline), or collective operations (rows of CcOp). */
export function rowRegions(rows: readonly Row[], name: string): Region[] {
  return numbered(
    rows.map((row) => ({ name: String(row[name]), start: Number(row.start_ts), end: Number(row.end_ts) })),
  );
}

/** Parts of one level of the hierarchy: modules, the modules inside of them, and so on down to operators. */
export function hierarchyRegions(roots: readonly TreeNode[], level: number): Region[] {
  return numbered(
    roots
      .flatMap(descendants)
      .filter((node) => node.depth === level)
      .map(({ name, start, end }) => ({ name, start, end })),
  );
}

export function levelsOf(roots: readonly TreeNode[]): number {
  return roots.flatMap(descendants).reduce((most, node) => Math.max(most, node.depth + 1), 0);
}

/** The regions that name, stride, offset and count select, in the order of time. */
export function chosenRegions(regions: readonly Region[], choice: RegionChoice): Region[] {
  const text = choice.text.trim().toLowerCase();
  const stride = Math.max(1, Math.floor(choice.stride) || 1);
  const offset = Math.max(0, Math.floor(choice.offset) || 0);
  const most = choice.count > 0 ? Math.floor(choice.count) : Number.POSITIVE_INFINITY;
  return regions
    .filter((region) => !text || region.name.toLowerCase().includes(text))
    .filter((_, index) => index >= offset && (index - offset) % stride === 0)
    .slice(0, most);
}

export interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Durations in bins of the same width; the longest belongs to the last one. */
export function distribution(durations: readonly number[], bins = 20): Bin[] {
  if (!durations.length) return [];
  const low = durations.reduce((a, b) => Math.min(a, b));
  const high = durations.reduce((a, b) => Math.max(a, b));
  if (low === high) return [{ from: low, to: high, count: durations.length }];
  const width = (high - low) / bins;
  const found = Array.from({ length: bins }, (_, i) => ({
    from: low + i * width,
    to: low + (i + 1) * width,
    count: 0,
  }));
  for (const value of durations) found[Math.min(bins - 1, Math.floor((value - low) / width))].count++;
  return found;
}

/** The choice as a deep link keeps it: `hierarchy,1,0,2,5,up` (level, offset, stride, count, text). */
export function formatChoice(choice: RegionChoice): string | undefined {
  if (choice.generator === "none") return undefined;
  const { generator, level, offset, stride, count, text } = choice;
  return [generator, level, offset, stride, count, text].join(",");
}

export function parseChoice(written: string | undefined): RegionChoice {
  const [generator, level, offset, stride, count, ...text] = (written ?? "").split(",");
  if (!GENERATORS.includes(generator as Generator)) return NO_REGIONS;
  const number = (value: string | undefined, otherwise: number) => {
    const read = Number(value);
    return value && Number.isInteger(read) && read >= otherwise ? read : otherwise;
  };
  return {
    generator: generator as Generator,
    level: Math.min(number(level, 0), DEEPEST),
    offset: number(offset, 0),
    stride: number(stride, 1),
    count: number(count, 0),
    text: text.join(","),
  };
}
