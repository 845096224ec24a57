// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { seriesColor, type Theme, textOn } from "../colors";
import { inRows } from "../rows";
import type { Camera } from "./draw";

const HEIGHT = 15;
const LEAST_NAMED = 24;

/** A stretch of time with a name. */
export interface Band {
  start: number;
  end: number;
  name: string;
}

/** Bands over all tracks, their names at the bottom; those whose times overlap have them below each other. */
export class Bands {
  private placed: { node: Band; row: number }[] = [];
  private rows = 0;

  get isEmpty(): boolean {
    return !this.placed.length;
  }

  set(bands: readonly Band[]): void {
    const { placed, rows } = inRows([...bands]);
    this.placed = placed;
    this.rows = rows;
  }

  draw(context: CanvasRenderingContext2D, theme: Theme, camera: Camera, width: number, height: number): void {
    const names = height - this.rows * HEIGHT;
    // Of parts that share a pixel one is drawn: what is drawn follows the screen, not the number of bands.
    const drawn: number[] = [];
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [index, { node, row }] of this.placed.entries()) {
      const x0 = Math.max(0, (node.start - camera.start) / camera.nsPerPixel);
      const x1 = Math.min(width, (node.end - camera.start) / camera.nsPerPixel);
      if (x1 <= x0 || x1 < (drawn[row] ?? -1) + 1) continue;
      drawn[row] = x1;
      const wide = Math.max(1, x1 - x0);
      context.fillStyle = seriesColor(index, theme.dark);
      context.globalAlpha = 0.12;
      context.fillRect(x0, 0, wide, names);
      context.globalAlpha = 1;
      const top = names + row * HEIGHT;
      context.fillRect(x0, top, wide, HEIGHT - 1);
      if (wide < LEAST_NAMED) continue;
      context.save();
      context.beginPath();
      context.rect(x0, top, wide, HEIGHT);
      context.clip();
      context.fillStyle = textOn(index, theme.dark);
      context.fillText(node.name, x0 + 4, top + HEIGHT / 2);
      context.restore();
    }
  }
}
