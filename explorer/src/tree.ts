// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import type { Row } from "./data/source";

export interface TreeNode {
  row: Row;
  id: string;
  name: string;
  short: string;
  start: number;
  end: number;
  depth: number;
  children: TreeNode[];
}

/** The tree of modules, layers and operators that the profile's nodes form. */
export function treeOf(rows: readonly Row[]): TreeNode[] {
  const byName = new Map<string, TreeNode>();
  const byId = new Map<string, TreeNode>();
  for (const row of rows) {
    const name = String(row.node_name);
    const node: TreeNode = {
      row,
      id: String(row.id),
      name,
      short: name.split("/").pop() || name,
      start: Number(row.start_ts),
      end: Number(row.end_ts),
      depth: 0,
      children: [],
    };
    byName.set(name, node);
    byId.set(node.id, node);
  }
  const roots: TreeNode[] = [];
  const placed = new Set<string>();
  for (const node of byId.values()) {
    // The ids of the children are exact; names of parents serve where a writer left the ids out.
    let ids: unknown = [];
    try {
      ids = JSON.parse(String(node.row.children_ids || "[]"));
    } catch {
      ids = [];
    }
    if (Array.isArray(ids)) {
      for (const id of ids.map(String)) {
        const child = byId.get(id);
        if (child && child !== node && !placed.has(id)) {
          node.children.push(child);
          placed.add(id);
        }
      }
    }
  }
  for (const node of byId.values()) {
    if (placed.has(node.id)) continue;
    const parent = byName.get(String(node.row.parent_name));
    if (parent && parent !== node) parent.children.push(node);
    else roots.push(node);
  }
  const settle = (node: TreeNode, depth: number, above: Set<TreeNode>) => {
    node.depth = depth;
    node.children = node.children.filter((child) => !above.has(child));
    node.children.sort((a, b) => a.start - b.start);
    const path = new Set(above).add(node);
    for (const child of node.children) settle(child, depth + 1, path);
  };
  roots.sort((a, b) => a.start - b.start);
  for (const root of roots) settle(root, 0, new Set());
  return roots;
}

export function descendants(node: TreeNode): TreeNode[] {
  return [node, ...node.children.flatMap(descendants)];
}
