// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

const MOST_ROWS = 4;

/** Parts whose times overlap below each other, the longest on top: none hides another one. */
export function inRows<Part extends { start: number; end: number }>(parts: Part[]) {
  const ends: number[] = [];
  const placed = [...parts]
    .sort((a, b) => a.start - b.start || b.end - a.end)
    .map((node) => {
      let row = ends.findIndex((end) => end <= node.start);
      if (row < 0) row = Math.min(ends.length, MOST_ROWS - 1);
      ends[row] = Math.max(ends[row] ?? 0, node.end);
      return { node, row };
    });
  return { placed, rows: Math.max(ends.length, 1) };
}
