// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Row, Statistics } from "../data/source";
import { bytes, count, percent, quantity } from "../format";

/** Name and value of each metric of a stretch of time. `total` in ns; `machine` is the row of Metadata. */
export function figuresOf(found: Statistics, total: number, machine: Row | undefined): [string, string][] {
  const m = machine;
  const sum = (name: string) => found.engines.reduce((value, row) => value + Number(row[name] ?? 0), 0);
  // Transposes have a column of their own.
  const useful = sum("raw_flops");
  const transposes = sum("flops_transpose");
  const flops = useful + transposes;
  const peak = m
    ? 2 * Number(m.tensor_engine_num_rows) * Number(m.tensor_engine_num_cols) * Number(m.tensor_engine_clock_freq)
    : 0;
  const moved = found.queues.reduce((value, row) => value + Number(row.bytes ?? 0), 0);
  const transfers = found.queues.reduce((value, row) => value + Number(row.transfers ?? 0), 0);
  const memory = sum("hbm_read_bytes") + sum("hbm_write_bytes");
  const bandwidth = m ? Number(m.hbm_ddr_bandwidth) : 0;
  return [
    ["Instructions", count(sum("instructions"))],
    ["MFU", peak && total ? percent(useful / (peak * total)) : "–"],
    ["HFU", peak && total ? percent(flops / (peak * total)) : "–"],
    ["Transposes", flops ? percent(transposes / flops) : "–"],
    ["Operations", quantity(flops, "FLOP")],
    ["MBU", bandwidth && total ? percent((memory / bandwidth / total) * 1e9) : "–"],
    ["HBM read", bytes(sum("hbm_read_bytes"))],
    ["HBM write", bytes(sum("hbm_write_bytes"))],
    ["Spill save", bytes(sum("spill_save_bytes"))],
    ["Spill reload", bytes(sum("spill_reload_bytes"))],
    ["DMA pieces", count(transfers)],
    ["DMA bytes", bytes(moved)],
    ["DMA average", transfers ? bytes(moved / transfers) : "–"],
    ["SBUF read", bytes(sum("sbuf_read_bytes"))],
    ["SBUF write", bytes(sum("sbuf_write_bytes"))],
  ];
}

export function Figure({ label, value, hint }: { label: string; value: string; hint?: string }) {
  return (
    <div className="figure" title={hint}>
      <span className="figure-value">{value}</span>
      <span className="figure-label">{label}</span>
    </div>
  );
}

export function Figures({ figures }: { figures: readonly [string, string][] }) {
  return (
    <div className="figures small">
      {figures.map(([label, value]) => (
        <Figure key={label} label={label} value={value} />
      ))}
    </div>
  );
}
