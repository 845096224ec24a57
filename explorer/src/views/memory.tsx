// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useRef, useState } from "react";
import { makePalette, readTheme } from "../colors";
import type { Allocations, Row } from "../data/source";
import { bytes, duration } from "../format";
import { Await, Empty, useLoaded, useSession, useWindow } from "../parts/common";

/** Addresses of the state buffer over time, in one partition; follows the timeline's view. */
export function MemoryPanel() {
  const session = useSession();
  const [partition, setPartition] = useState<number | undefined>(undefined);
  const loaded = useLoaded(
    () =>
      session.has("SbufAllocation")
        ? session.source.allocations(session.profile.name, session.device, partition)
        : Promise.resolve({ rows: [], partitions: [], partition: 0 }),
    [session, partition],
  );
  return (
    <Await loaded={loaded}>
      {(found) =>
        found.rows.length ? (
          <Memory found={found} onPartition={setPartition} />
        ) : (
          <Empty title="No allocations">The profile does not say which addresses of the state buffer are in use.</Empty>
        )
      }
    </Await>
  );
}

const LEFT = 74;
const BOTTOM = 18;

function Memory({ found, onPartition }: { found: Allocations; onPartition: (partition: number) => void }) {
  const session = useSession();
  const canvas = useRef<HTMLCanvasElement>(null);
  const { start, end } = useWindow();
  const [size, setSize] = useState({ width: 600, height: 260 });
  const [over, setOver] = useState<Row | null>(null);
  const [by, setBy] = useState<"source" | "operation" | "tensor">("source");
  const rows = found.rows;
  const highest = Math.max(...rows.map((row) => Number(row.end_address)), 1);
  const labelOf = (row: Row) =>
    by === "source"
      ? String(row.op_source_type ?? "Instruction")
      : by === "tensor"
        ? String(row.tensor_name ?? "(none)")
        : String(row.opcode ?? row.queue_name ?? "(none)");
  const labels = [...new Set(rows.map(labelOf))].sort();

  useEffect(() => {
    const element = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const span = Math.max(end - start, 1e-9);
  const plot = { width: size.width - LEFT, height: size.height - BOTTOM };
  const x = (t: number) => LEFT + ((t - start) / span) * plot.width;
  const y = (address: number) => plot.height - (address / highest) * plot.height;

  useEffect(() => {
    const element = canvas.current!;
    const scale = window.devicePixelRatio || 1;
    element.width = size.width * scale;
    element.height = size.height * scale;
    const context = element.getContext("2d")!;
    context.scale(scale, scale);
    const theme = readTheme();
    const palette = makePalette(labels, theme);
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, size.width, size.height);
    context.font = "10px system-ui, sans-serif";
    context.fillStyle = theme.muted;
    // Addresses are powers of two apart.
    const tick = 2 ** Math.ceil(Math.log2(highest / 6));
    for (let address = 0; address <= highest; address += tick) {
      context.fillStyle = theme.line;
      context.fillRect(LEFT, y(address), plot.width, 1);
      context.fillStyle = theme.muted;
      context.textAlign = "right";
      context.textBaseline = address === 0 ? "bottom" : y(address) < 8 ? "top" : "middle";
      context.fillText(`0x${address.toString(16)}`, LEFT - 6, y(address));
    }
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, plot.width, plot.height);
    context.clip();
    for (const row of rows) {
      const from = Number(row.start_ts);
      const to = Number(row.end_ts);
      if (to < start || from > end) continue;
      context.fillStyle = palette.css[labels.indexOf(labelOf(row))];
      const top = y(Number(row.end_address));
      context.globalAlpha = row === over ? 1 : 0.75;
      context.fillRect(x(from), top, Math.max(1, x(to) - x(from)), Math.max(1, y(Number(row.start_address)) - top));
      if (row === over) {
        context.strokeStyle = theme.selection;
        context.strokeRect(x(from), top, Math.max(1, x(to) - x(from)), Math.max(1, y(Number(row.start_address)) - top));
      }
    }
    context.restore();
    context.fillStyle = theme.muted;
    context.textBaseline = "bottom";
    context.textAlign = "left";
    context.fillText(duration(Math.max(0, start)), LEFT, size.height - 2);
    context.textAlign = "right";
    context.fillText(duration(end), size.width - 4, size.height - 2);
  });

  const pick = (event: React.MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const t = start + ((event.clientX - box.left - LEFT) / plot.width) * span;
    const address = ((plot.height - (event.clientY - box.top)) / plot.height) * highest;
    // The last one drawn lies on top.
    return rows.findLast(
      (row) =>
        Number(row.start_ts) <= t &&
        Number(row.end_ts) >= t &&
        Number(row.start_address) <= address &&
        Number(row.end_address) > address,
    );
  };

  return (
    <div className="memory">
      <div className="table-tools">
        <label>
          Partition{" "}
          <select value={found.partition} onChange={(event) => onPartition(Number(event.target.value))}>
            {found.partitions.map((number) => (
              <option key={number}>{number}</option>
            ))}
          </select>
        </label>
        <label>
          Colour by{" "}
          <select value={by} onChange={(event) => setBy(event.target.value as typeof by)}>
            <option value="source">instruction or DMA</option>
            <option value="operation">operation</option>
            <option value="tensor">tensor</option>
          </select>
        </label>
        <span className="muted">
          {rows.length.toLocaleString("en-US")} allocations, up to {bytes(highest)}
        </span>
        <span className="legend">
          {labels.slice(0, 8).map((label, index) => (
            <span key={label}>
              <i style={{ background: makePalette(labels, readTheme()).css[index] }} /> {label}
            </span>
          ))}
        </span>
      </div>
      <div className="memory-plot">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`State buffer of partition ${found.partition}: ${rows.length} allocations`}
          onMouseMove={(event) => setOver(pick(event) ?? null)}
          onMouseLeave={() => setOver(null)}
          onClick={(event) => {
            const row = pick(event);
            if (row) session.show(Number(row.start_ts), Number(row.end_ts));
          }}
        />
      </div>
      <p className="memory-note" aria-live="polite">
        {over
          ? `0x${Number(over.start_address).toString(16)}–0x${Number(over.end_address).toString(16)} (${bytes(Number(over.end_address) - Number(over.start_address))}), ${[over.opcode, over.operands, over.queue_name && `${over.queue_name} block ${over.block_id ?? ""}`, over.tensor_name, over.hlo_name].filter(Boolean).join(", ")}, ${duration(Number(over.start_ts))} for ${duration(Number(over.end_ts) - Number(over.start_ts))}`
          : "Point at a rectangle to see what lives there."}
      </p>
    </div>
  );
}
