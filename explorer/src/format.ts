// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/** Times and quantities as people read them. */

const TIME_UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

export function significant(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude >= digits) return Math.round(value).toLocaleString("en-US");
  return Number(value.toPrecision(digits)).toString();
}

export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  for (const [unit, name] of TIME_UNITS) if (size >= unit || unit === 1) return `${significant(ns / unit)} ${name}`;
  return `${ns} ns`;
}

/** A moment with as many digits as the distance between neighbouring marks asks for. */
export function moment(ns: number, step: number): string {
  const size = Math.max(Math.abs(ns), step);
  const [unit, name] = TIME_UNITS.find(([u]) => size >= u) ?? TIME_UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(ns / unit).toFixed(unit === 1 && step >= 1 ? 0 : digits)} ${name}`;
}

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined || !Number.isFinite(count)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${significant(value)} ${units[unit]}`;
}

export function quantity(value: number | null | undefined, unit = ""): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const prefixes: [number, string][] = [
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [size, prefix] of prefixes)
    if (Math.abs(value) >= size) return `${significant(value / size)} ${prefix}${unit}`;
  return `${significant(value)}${unit ? ` ${unit}` : ""}`;
}

/** A share between 0 and 1. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  return `${significant(share * 100, 3)} %`;
}

export function byUnit(value: number, unit: string): string {
  if (unit === "%") return `${significant(value, 3)} %`;
  if (unit === "B") return bytes(value);
  if (unit === "B/s") return `${bytes(value)}/s`;
  return quantity(value, unit);
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/** A round distance between marks: 1, 2 or 5 times a power of ten, at least `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = least / power;
  return power * (factor <= 1.0000001 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

/** `time_ns` as "Time", `hbm_read_bytes` as "HBM read bytes". */
export function heading(column: string): string {
  const short: Record<string, string> = {
    ns: "",
    ts: "",
    hbm: "HBM",
    dma: "DMA",
    sbuf: "SBUF",
    psum: "PSUM",
    mfu: "MFU",
    hfu: "HFU",
    mbu: "MBU",
    id: "ID",
    pc: "PC",
    gpsimd: "GpSimd",
    hlo: "HLO",
    nki: "NKI",
    flops: "FLOPs",
    cc: "CC",
    mm: "matmul",
    idx: "index",
  };
  const words = column.split("_").map((word) => short[word] ?? word);
  const text = words.filter(Boolean).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A value of a table's column, by what the column's name says of its unit. */
export function cell(column: string, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value !== "number") return String(value);
  if (/_ns$|_ts$|^timestamp$|_time_ns$|gap_time/.test(column)) return duration(value);
  if (/(^|_)bytes($|_)|_size$|^size$|_address$/.test(column))
    return /address/.test(column) ? `0x${value.toString(16)}` : bytes(value);
  if (/throughput|bandwidth$/.test(column)) return `${bytes(value)}/s`;
  if (/flops/.test(column)) return quantity(value, column.includes("per_second") ? "FLOP/s" : "FLOP");
  if (/_time$/.test(column)) return duration(value * 1e9);
  return Number.isInteger(value) ? value.toLocaleString("en-US") : significant(value, 5);
}
