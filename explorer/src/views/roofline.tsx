// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useMemo, useRef, useState } from "react";
import { isDark, seriesColor } from "../colors";
import type { Row } from "../data/source";
import { bytes, duration, quantity, significant } from "../format";
import { Await, Empty, useLoaded, useSession } from "../parts/common";
import { DataTable } from "../parts/table";

const SMALLEST = { width: 360, height: 170 };
const MARGIN = { left: 78, right: 20, top: 14, bottom: 46 };

interface Kernel {
  name: string;
  calls: number;
  time: number;
  flops: number;
  bytes: number;
  limiter: string;
  start: number;
  end: number;
}

/** Kernels on the roofline: operations per byte against operations per second, under the machine's two ceilings. */
export function RooflinePanel() {
  const session = useSession();
  const loaded = useLoaded(
    () =>
      Promise.all([
        session.rows("KernelRoofline", { limit: 20000 }),
        session.rows("Metadata"),
        session.rows("Summary"),
      ]),
    [session],
  );
  return (
    <Await loaded={loaded}>
      {([rows, constants, summaries]) =>
        rows.length && constants.length ? (
          <Roofline rows={rows} constants={constants[0]} summary={summaries[0]} />
        ) : (
          <Empty title="No kernels">The profile holds no kernel with operations or traffic.</Empty>
        )
      }
    </Await>
  );
}

function Roofline({ rows, constants, summary }: { rows: Row[]; constants: Row; summary?: Row }) {
  const session = useSession();
  const [hover, setHover] = useState<Kernel | null>(null);
  // Drawn at the size it has on the page, so that its text has the size of other text.
  const chart = useRef<HTMLDivElement>(null);
  const [{ width, height }, setSize] = useState(SMALLEST);
  useEffect(() => {
    const element = chart.current!;
    const observer = new ResizeObserver(() =>
      setSize({
        width: Math.max(SMALLEST.width, element.clientWidth),
        height: Math.max(SMALLEST.height, element.clientHeight),
      }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const kernels = useMemo(() => {
    const found = new Map<string, Kernel>();
    for (const row of rows) {
      const name = String(row.kernel_name);
      const start = Number(row.start_ts);
      const end = Number(row.end_ts);
      const entry = found.get(name) ?? {
        name,
        calls: 0,
        time: 0,
        flops: 0,
        bytes: 0,
        limiter: String(row.limiter),
        start,
        end,
      };
      entry.calls++;
      entry.time += end - start;
      entry.flops += Number(row.flops);
      entry.bytes += Number(row.hbm_bytes);
      found.set(name, entry);
    }
    return [...found.values()];
  }, [rows]);
  const dark = isDark();
  const peak =
    2 *
    Number(constants.tensor_engine_num_rows) *
    Number(constants.tensor_engine_num_cols) *
    Number(constants.tensor_engine_clock_freq) *
    1e9;
  const vectorPeak = Number(constants.vector_engine_num_channels) * Number(constants.vector_engine_clock_freq) * 1e9;
  const bandwidth = Number(constants.hbm_ddr_bandwidth);
  const ridge = peak / bandwidth;
  const shown = kernels.filter((kernel) => kernel.flops > 0 && kernel.bytes > 0 && kernel.time > 0);
  const left = kernels.length - shown.length;
  const intensity = (k: Kernel) => k.flops / k.bytes;
  const rate = (k: Kernel) => (k.flops / k.time) * 1e9;
  const lowX = Math.min(ridge / 100, ...shown.map(intensity)) / 2;
  const highX = Math.max(ridge * 10, ...shown.map(intensity)) * 2;
  const lowY = Math.min(peak / 1e4, ...shown.map(rate)) / 2;
  const highY = peak * 2;
  const x = (v: number) =>
    MARGIN.left +
    ((Math.log(v) - Math.log(lowX)) / (Math.log(highX) - Math.log(lowX))) * (width - MARGIN.left - MARGIN.right);
  const y = (v: number) =>
    height -
    MARGIN.bottom -
    ((Math.log(v) - Math.log(lowY)) / (Math.log(highY) - Math.log(lowY))) * (height - MARGIN.top - MARGIN.bottom);
  const decades = (low: number, high: number) => {
    const marks = [];
    for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++) marks.push(10 ** power);
    return marks;
  };
  const limiters = [...new Set(shown.map((kernel) => kernel.limiter))].sort();
  const colorOf = (limiter: string) => seriesColor(limiters.indexOf(limiter), dark);
  const longest = Math.max(...shown.map((kernel) => kernel.time), 1);
  const go = (kernel: Kernel) => {
    session.show(kernel.start, kernel.end);
    session.highlightBy("kernel", new Set([kernel.name])).catch(() => undefined);
  };
  const bound = (k: Kernel) => (intensity(k) < ridge ? "memory" : "compute");
  return (
    <div className="roofline">
      <div className="roofline-chart">
        <div className="plot-space" ref={chart}>
          <svg
            viewBox={`0 0 ${width} ${height}`}
            className="plot"
            role="img"
            aria-label={`Roofline of ${shown.length} kernels; the table below lists the same points`}
          >
            {decades(lowX, highX).map((mark) => (
              <g key={mark}>
                <line x1={x(mark)} x2={x(mark)} y1={MARGIN.top} y2={height - MARGIN.bottom} className="grid" />
                <text x={x(mark)} y={height - MARGIN.bottom + 16} textAnchor="middle">
                  {significant(mark)}
                </text>
              </g>
            ))}
            {decades(lowY, highY).map((mark) => (
              <g key={mark}>
                <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(mark)} y2={y(mark)} className="grid" />
                <text x={MARGIN.left - 8} y={y(mark)} textAnchor="end" dominantBaseline="central">
                  {quantity(mark, "FLOP/s")}
                </text>
              </g>
            ))}
            <text x={(width + MARGIN.left) / 2} y={height - 8} textAnchor="middle" className="axis-title">
              arithmetic intensity, operations per byte of device memory
            </text>
            <path
              d={`M${x(lowX)},${y(Math.max(lowY, lowX * bandwidth))}L${x(ridge)},${y(peak)}L${x(highX)},${y(peak)}`}
              className="ceiling"
            />
            {vectorPeak > lowY && (
              <line
                x1={x(Math.max(lowX, vectorPeak / bandwidth))}
                x2={x(highX)}
                y1={y(vectorPeak)}
                y2={y(vectorPeak)}
                className="ceiling minor"
              />
            )}
            <text x={width - MARGIN.right - 4} y={y(peak) - 8} textAnchor="end">
              tensor engine {quantity(peak, "FLOP/s")}
            </text>
            {vectorPeak > lowY && (
              <text x={width - MARGIN.right - 4} y={y(vectorPeak) - 6} textAnchor="end">
                vector engine {quantity(vectorPeak, "FLOP/s")}
              </text>
            )}
            <text x={x(ridge / 8) - 8} y={y((ridge / 8) * bandwidth) - 6} textAnchor="end">
              device memory {bytes(bandwidth)}/s
            </text>
            {shown.map((kernel) => (
              <circle
                key={kernel.name}
                cx={x(intensity(kernel))}
                cy={y(Math.max(rate(kernel), lowY))}
                r={4 + 8 * Math.sqrt(kernel.time / longest)}
                fill={colorOf(kernel.limiter)}
                className={hover === kernel ? "point over" : "point"}
                onMouseEnter={() => setHover(kernel)}
                onMouseLeave={() => setHover(null)}
                onClick={() => go(kernel)}
              >
                <title>{`${kernel.name}: ${quantity(rate(kernel), "FLOP/s")} at ${significant(intensity(kernel))} FLOP/B, ${duration(kernel.time)}, limited by ${kernel.limiter}`}</title>
              </circle>
            ))}
          </svg>
        </div>
        <div className="legend">
          {limiters.map((limiter) => (
            <span key={limiter}>
              <i style={{ background: colorOf(limiter) }} /> limited by {limiter}
            </span>
          ))}
          <span className="muted">area: time</span>
          {summary && <span className="muted">balance at {significant(ridge, 3)} FLOP/B</span>}
          {left > 0 && (
            <span className="muted">{left} kernels without operations or traffic are in the table only</span>
          )}
        </div>
      </div>
      <DataTable
        label="Kernels"
        rows={kernels}
        rowKey={(kernel) => kernel.name}
        exportName={`${session.profile.name}-kernels`}
        onSelect={go}
        initialSort={{ key: "time", descending: true }}
        columns={[
          { key: "name", title: "Kernel", width: 140 },
          { key: "calls", numeric: true, width: 60 },
          { key: "time", title: "Time", numeric: true, render: (k) => duration(k.time) },
          { key: "flops", title: "Operations", numeric: true, render: (k) => quantity(k.flops, "FLOP") },
          { key: "bytes", title: "Device memory", numeric: true, render: (k) => bytes(k.bytes) },
          {
            key: "intensity",
            numeric: true,
            value: (k) => (k.bytes ? intensity(k) : null),
            render: (k) => (k.bytes ? significant(intensity(k)) : "–"),
          },
          { key: "rate", numeric: true, value: rate, render: (k) => quantity(rate(k), "FLOP/s") },
          {
            key: "roof",
            title: "Of the roof",
            numeric: true,
            value: (k) => (k.bytes ? rate(k) / Math.min(peak, intensity(k) * bandwidth) : null),
            render: (k) =>
              k.bytes && k.flops
                ? `${significant((100 * rate(k)) / Math.min(peak, intensity(k) * bandwidth), 3)} %`
                : "–",
          },
          { key: "bound", title: "Bound", width: 80, value: bound, render: bound },
          { key: "limiter", width: 80 },
        ]}
      />
    </div>
  );
}
