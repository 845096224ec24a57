// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useMemo, useState } from "react";
import { isDark, seriesColor, textOn } from "../colors";
import type { Row } from "../data/source";
import { bytes, count, duration, percent } from "../format";
import { Await, Empty, useLoaded, useSession, useWindow } from "../parts/common";
import { DataTable } from "../parts/table";
import { inRows } from "../rows";
import { useStore } from "../store";
import { descendants, type TreeNode, treeOf } from "../tree";

function useNodes() {
  const session = useSession();
  return useLoaded(async () => treeOf(await session.rows("FrameworkNode", { limit: 50000 })), [session]);
}

const NONE = (
  <Empty title="No operators">
    The NEFF holds no provenance, so instructions cannot be traced to modules and operators.
  </Empty>
);

export function OperatorsPanel() {
  const loaded = useNodes();
  return <Await loaded={loaded}>{(roots) => (roots.length ? <Operators roots={roots} /> : NONE)}</Await>;
}

function Operators({ roots }: { roots: TreeNode[] }) {
  const session = useSession();
  const [open, setOpen] = useState<ReadonlySet<string>>(() => {
    // Opened until there is something to read.
    const first = new Set<string>();
    let level = roots;
    while (level.length && level.length < 12 && first.size < 40) {
      for (const node of level) first.add(node.id);
      level = level.flatMap((node) => node.children);
    }
    return first;
  });
  const [flat, setFlat] = useState(false);
  const shown = useMemo(() => {
    const list: TreeNode[] = [];
    const walk = (node: TreeNode) => {
      if (!flat || !node.children.length) list.push(node);
      if (flat || open.has(node.id)) node.children.forEach(walk);
    };
    roots.forEach(walk);
    return list;
  }, [roots, open, flat]);
  const show = (node: TreeNode) => {
    session.show(node.start, node.end);
    session.highlightBy("node", new Set(descendants(node).map((entry) => entry.name))).catch(() => undefined);
  };
  const toggle = (node: TreeNode) => {
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(node.id)) next.add(node.id);
      return next;
    });
  };
  const engine = (name: string) => [
    {
      key: `${name}_engine_instruction_count`,
      title: `${name === "gpsimd" ? "GpSimd" : name.charAt(0).toUpperCase() + name.slice(1)} instr.`,
      numeric: true,
      value: (node: TreeNode) => node.row[`${name}_engine_instruction_count`],
      render: (node: TreeNode) => count(node.row[`${name}_engine_instruction_count`] as number),
    },
    {
      key: `total_time_${name}`,
      title: "Time",
      numeric: true,
      value: (node: TreeNode) => Number(node.row[`total_time_${name}`] ?? 0),
      render: (node: TreeNode) => duration(Number(node.row[`total_time_${name}`] ?? Number.NaN)),
    },
  ];
  return (
    <DataTable
      label="Operators"
      rows={shown}
      rowKey={(node) => node.id}
      filter
      exportName={`${session.profile.name}-operators`}
      onSelect={show}
      tools={
        <button type="button" className="quiet" aria-pressed={flat} onClick={() => setFlat(!flat)}>
          Flat
        </button>
      }
      columns={[
        {
          key: "name",
          title: "Node",
          width: 260,
          render: (node) => (
            <span style={{ paddingLeft: flat ? 0 : node.depth * 14 }}>
              {!flat && node.children.length > 0 && (
                <button
                  type="button"
                  className="twisty"
                  aria-label={`${open.has(node.id) ? "Close" : "Open"} ${node.short}`}
                  aria-expanded={open.has(node.id)}
                  onClick={(event) => {
                    event.stopPropagation();
                    toggle(node);
                  }}
                >
                  {open.has(node.id) ? "▾" : "▸"}
                </button>
              )}
              <span title={node.name}>{flat ? node.name : node.short}</span>
            </span>
          ),
        },
        {
          key: "span",
          title: "Span",
          numeric: true,
          value: (n) => n.end - n.start,
          render: (n) => duration(n.end - n.start),
        },
        {
          key: "mfu",
          title: "MFU in use",
          numeric: true,
          value: (n) => n.row.mfu,
          render: (n) => percent(n.row.mfu as number),
        },
        {
          key: "hfu",
          title: "HFU in use",
          numeric: true,
          value: (n) => n.row.hfu,
          render: (n) => percent(n.row.hfu as number),
        },
        {
          key: "read",
          title: "HBM read",
          numeric: true,
          value: (n) => n.row.hbm_read_bytes,
          render: (n) => bytes(n.row.hbm_read_bytes as number),
        },
        {
          key: "write",
          title: "HBM write",
          numeric: true,
          value: (n) => n.row.hbm_write_bytes,
          render: (n) => bytes(n.row.hbm_write_bytes as number),
        },
        ...["tensor", "vector", "scalar", "gpsimd", "sync"].flatMap(engine),
        {
          key: "total_channels_vector",
          title: "Vector channels",
          numeric: true,
          value: (n) => n.row.total_channels_vector,
        },
        {
          key: "total_channels_scalar",
          title: "Scalar channels",
          numeric: true,
          value: (n) => n.row.total_channels_scalar,
        },
      ]}
    />
  );
}

export function HierarchyPanel() {
  const session = useSession();
  const nodes = useNodes();
  const kernels = useLoaded(() => session.rows("KernelRoofline", { limit: 20000 }), [session]);
  return (
    <Await loaded={nodes}>
      {(roots) =>
        roots.length ? <Icicle roots={roots} kernels={kernels.state === "ready" ? kernels.value : []} /> : NONE
      }
    </Await>
  );
}

const LEVEL = 24;

/** Modules over operators over kernels, along the time axis of the timeline. */
function Icicle({ roots, kernels }: { roots: TreeNode[]; kernels: Row[] }) {
  const session = useSession();
  const { start, end } = useWindow();
  const highlight = useStore(session.highlight);
  const dark = isDark();
  const span = Math.max(end - start, 1e-9);
  const levels: TreeNode[][] = [];
  const walk = (node: TreeNode) => {
    if (node.end < start || node.start > end || (node.end - node.start) / span < 0.0008) return;
    levels[node.depth] ??= [];
    levels[node.depth].push(node);
    node.children.forEach(walk);
  };
  roots.forEach(walk);
  const toggle = (node: TreeNode) => {
    const names = descendants(node).map((entry) => entry.name);
    const next = new Set(session.highlight.get() ?? []);
    const remove = names.every((name) => next.has(name));
    for (const name of names) {
      if (remove) next.delete(name);
      else next.add(name);
    }
    if (next.size) session.highlightBy("node", next).catch(() => undefined);
    else session.setHighlight(null);
  };
  const place = (from: number, to: number) => {
    const left = Math.max(0, (from - start) / span);
    const right = Math.min(1, (to - start) / span);
    return { left: `${left * 100}%`, width: `max(2px, calc(${(right - left) * 100}% - 1px))` };
  };
  const shownKernels = kernels.filter(
    (row) =>
      Number(row.end_ts) > start &&
      Number(row.start_ts) < end &&
      (Number(row.end_ts) - Number(row.start_ts)) / span > 0.0008,
  );
  return (
    <div className="icicle" onWheel={(event) => session.timeline.get()?.pan(event.deltaY + event.deltaX)}>
      <p className="muted">
        Click shows a part in the timeline; right click, or H on a focused part, highlights its instructions. Follows
        the timeline's view.
      </p>
      {levels.map(inRows).map(({ placed, rows }, depth) => (
        <div key={depth} className="icicle-level" style={{ height: rows * LEVEL }}>
          {placed.map(({ node, row }) => (
            <button
              key={node.id}
              type="button"
              style={{
                ...place(node.start, node.end),
                top: row * LEVEL,
                height: LEVEL - 2,
                background: seriesColor(Number(node.id) % 16, dark),
                color: textOn(Number(node.id) % 16, dark),
              }}
              className={highlight?.has(node.name) ? "highlighted" : ""}
              title={`${node.name}\n${duration(node.end - node.start)}, MFU ${percent(node.row.mfu as number)}`}
              onClick={() => session.show(node.start, node.end)}
              onContextMenu={(event) => {
                event.preventDefault();
                toggle(node);
              }}
              onKeyDown={(event) => event.key.toLowerCase() === "h" && toggle(node)}
            >
              {node.short}
            </button>
          ))}
        </div>
      ))}
      {kernels.length > 0 && (
        <div className="icicle-level kernels" style={{ height: LEVEL - 2 }}>
          {shownKernels.map((row) => (
            <button
              key={row.row}
              type="button"
              style={{ ...place(Number(row.start_ts), Number(row.end_ts)), background: "var(--line-strong)" }}
              title={`${row.kernel_name}\n${duration(Number(row.end_ts) - Number(row.start_ts))}, limited by ${row.limiter}`}
              onClick={() => session.show(Number(row.start_ts), Number(row.end_ts))}
              onContextMenu={(event) => {
                event.preventDefault();
                session.highlightBy("kernel", new Set([String(row.kernel_name)])).catch(() => undefined);
              }}
            >
              {String(row.kernel_name)}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
