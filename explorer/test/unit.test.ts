// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { describe, expect, it } from "vitest";
import { blend, colorOf, makePalette, seriesColor, textOn } from "../src/colors";
import type { SliceColumns } from "../src/data/drawn";
import { condition } from "../src/data/inline";
import { bytes, duration, moment, roundStep } from "../src/format";
import { toCsv } from "../src/parts/csv";
import {
  chosenRegions,
  distribution,
  formatChoice,
  hierarchyRegions,
  levelsOf,
  NO_REGIONS,
  parseChoice,
  rowRegions,
} from "../src/regions";
import { inRows } from "../src/rows";
import { Series } from "../src/timeline/counters";
import { Frame, TILE_COLUMNS } from "../src/timeline/frame";
import { laneLabel } from "../src/timeline/grouping";
import { Slices } from "../src/timeline/slices";
import { paintTile, TILE_ROWS } from "../src/timeline/tiles";
import { descendants, treeOf } from "../src/tree";

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function columns(lanes: { ts: number; dur: number }[][]): SliceColumns {
  const rows = lanes.flatMap((slices, lane) =>
    [...slices]
      .sort((a, b) => a.ts - b.ts || Number(a.dur > 0) - Number(b.dur > 0) || b.dur - a.dur)
      .map((slice) => ({ ...slice, lane })),
  );
  return {
    kind: "device",
    base: 0n,
    end: Math.max(1, ...rows.map((row) => row.ts + row.dur)),
    lanes: lanes.map((_, i) => ({ label: `lane${i}`, group: "Engines", table: "Instruction" })),
    names: ["a"],
    colors: ["x", "y"],
    lane: Uint16Array.from(rows, (row) => row.lane),
    ts: Float64Array.from(rows, (row) => row.ts),
    dur: Uint32Array.from(rows, (row) => row.dur),
    name: new Uint32Array(rows.length),
    color: Uint16Array.from(rows, (_, i) => i % 2),
    row: Uint32Array.from(rows, (_, i) => i),
    wait: null,
    rows: null,
    offsets: null,
  };
}

const THEME = {
  dark: false,
  background: "#f0f0f0",
  panel: "#ffffff",
  text: "#000000",
  muted: "#808080",
  line: "#d0d0d0",
  accent: "#0000ff",
  selection: "#ff0000",
  flow: "#00ff00",
  warning: "#ffff00",
};

function scattered(count: number, seed: number, overlap: boolean) {
  const next = random(seed);
  const list = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    const dur = Math.floor(next() * 50);
    list.push({ ts: at, dur });
    at += overlap ? Math.floor(next() * 20) : dur + Math.floor(next() * 20);
  }
  return list;
}

describe("slices", () => {
  it("put no two events over one another in a row, and lose none", () => {
    const slices = new Slices(columns([scattered(500, 1, true), scattered(300, 2, false)]));
    expect(slices.count).toBe(800);
    expect(slices.lanes[1].rows).toBe(1);
    expect(new Set(slices.row).size).toBe(800);
    for (let row = 0; row < slices.rowCount; row++)
      for (let i = slices.off[row] + 1; i < slices.off[row + 1]; i++)
        expect(slices.ts[i]).toBeGreaterThanOrEqual(slices.ts[i - 1] + slices.dur[i - 1]);
  });

  it("stack calls by their depth", () => {
    const calls = [
      { ts: 0, dur: 100 },
      { ts: 0, dur: 40 },
      { ts: 10, dur: 20 },
      { ts: 50, dur: 30 },
    ];
    const slices = new Slices(columns([calls]));
    const depth = calls.map((call) =>
      slices.rowOfSlice([0, 1, 2, 3].find((i) => slices.ts[i] === call.ts && slices.dur[i] === call.dur)!),
    );
    expect(depth).toEqual([0, 1, 2, 1]);
    // What nests counts once.
    expect(slices.busyLane(0, 0, 100)).toBe(100);
    expect(slices.busyLane(0, 90, 200)).toBe(10);
  });

  it("answer as a search of all slices does", () => {
    const slices = new Slices(columns([scattered(700, 3, false)]));
    const next = random(9);
    for (let trial = 0; trial < 300; trial++) {
      const a = Math.floor(next() * slices.end);
      const b = a + Math.floor(next() * 3000) + 1;
      let busy = 0;
      for (let i = 0; i < slices.count; i++)
        busy += Math.max(0, Math.min(b, slices.ts[i] + slices.dur[i]) - Math.max(a, slices.ts[i]));
      expect(slices.busy(0, a, b)).toBe(busy);
      const low = Math.floor(next() * 650);
      const high = low + 1 + Math.floor(next() * 49);
      expect(slices.dur[slices.longest(low, high)]).toBe(Math.max(...slices.dur.slice(low, high)));
      const found: number[] = [];
      slices.eachLong(low, high, 30, (i) => found.push(i));
      const expected = Array.from({ length: high - low }, (_, i) => low + i).filter((i) => slices.dur[i] >= 30);
      expect(found).toEqual(expected);
      expect(slices.lowerBound(a, 0, slices.count)).toBe(slices.gallop(a, 0, slices.count));
    }
  });

  it("paint a column exactly where something runs", () => {
    const slices = new Slices(columns([scattered(4000, 4, false)]));
    const pixels = new Uint32Array(TILE_COLUMNS * TILE_ROWS);
    const q = 64;
    paintTile(slices, makePalette(["x", "y"], THEME), 0, TILE_COLUMNS * q, q, pixels);
    for (let column = 0; column < TILE_COLUMNS; column++) {
      const from = TILE_COLUMNS * q + column * q;
      const busy = slices.busy(0, from, from + q);
      // A sliver that reaches over an edge by less than a twentieth of a column is left to the column before.
      if (busy > 4) expect(pixels[column], `column ${column} busy ${busy}`).not.toBe(0);
      if (busy === 0 && slices.lowerBound(from, 0, slices.count) === slices.lowerBound(from + q, 0, slices.count))
        expect(pixels[column]).toBe(0);
    }
  });

  it("pick what is under the pointer", () => {
    const slices = new Slices(
      columns([
        [
          { ts: 100, dur: 50 },
          { ts: 200, dur: 0 },
        ],
      ]),
    );
    expect(slices.pick(0, 120, 1)).toBe(0);
    expect(slices.pick(0, 170, 1)).toBe(-1);
    expect(slices.pick(0, 199, 2)).toBe(1);
  });
});

describe("counters", () => {
  it("hold a value until the next sample and know the highest of a range", () => {
    const next = random(5);
    const value = Float64Array.from({ length: 1000 }, () => next());
    const series = new Series(
      { label: "x", group: "g", unit: "", style: "step", max: null, hidden: false },
      Float64Array.from({ length: 1000 }, (_, i) => i * 10),
      value,
    );
    expect(series.at(-1)).toBe(-1);
    expect(series.at(19)).toBe(1);
    expect(series.at(20)).toBe(2);
    expect(series.most(13, 777)).toBe(Math.max(...value.slice(13, 777)));
  });
});

describe("labels of system lanes", () => {
  const key = {
    label: "",
    group: "",
    table: "",
    instance_id: "i-1",
    process_id: 7,
    thread_id: 9,
    nc_idx: 0,
    pcore_idx: 4,
    worker_gid: 2,
  };
  it("follow the grouping", () => {
    const hardware = { ...key, trace_event_source: "neuron_hw" };
    const runtime = { ...key, trace_event_source: "neuron_rt" };
    const framework = { ...key, trace_event_source: "framework" };
    expect(laneLabel(hardware, "Default")).toBe("i-1/PID:7/neuron_hw/NC0:4");
    expect(laneLabel(runtime, "Default")).toBe("i-1/PID:7/neuron_rt/NC:0");
    expect(laneLabel(framework, "Default")).toBe("i-1/PID:7/framework/TID:9");
    expect(laneLabel({ ...framework, framework_stream_id: "3" }, "Default")).toBe("i-1/PID:7/framework/Stream:3");
    expect(laneLabel(runtime, "CPU vs Device")).toBe("i-1/PID:7/TID:9/neuron_rt");
    expect(laneLabel(hardware, "CPU vs Device")).toBe("i-1/PID:7/Worker:2/neuron_hw");
    expect(laneLabel(hardware, "NeuronCore")).toBe("i-1/NC:0");
    expect(laneLabel(runtime, "Thread")).toBe("i-1/PID:7/TID:9");
    expect(laneLabel(runtime, "Process")).toBe("i-1/PID:7");
    expect(laneLabel(runtime, "Instance")).toBe("i-1");
    expect(laneLabel({ ...runtime, transfer: "host_to_device" }, "Default")).toBe("i-1/NC:0/host_to_device_transfers");
  });
});

describe("text", () => {
  it("gives units that fit", () => {
    expect([0, 999, 1500, 2.5e6, 3e9].map(duration)).toEqual(["0 ns", "999 ns", "1.5 µs", "2.5 ms", "3 s"]);
    expect(bytes(1536)).toBe("1.5 KiB");
    expect(moment(1_234_500, 100)).toBe("1.2345 ms");
    expect([1, 1.5, 3, 7, 30].map(roundStep)).toEqual([1, 2, 5, 10, 50]);
  });
  it("quotes CSV and disarms formulas", () => {
    expect(toCsv(["a,b"], [["=1+1", 'x"y', -3]])).toBe('"a,b"\r\n\'=1+1,"x""y",-3');
  });
  it("searches as the server does", () => {
    expect([1, 5, 9].filter(condition("int64", "2..7", false))).toEqual([5]);
    expect([1, 5, 9].filter(condition("int64", ">= 5", false))).toEqual([5, 9]);
    expect(["MATMUL", "ACTIVATE"].filter(condition("string", "matm", false))).toEqual(["MATMUL"]);
    expect(["MATMUL", "MAT"].filter(condition("string", "MAT", true))).toEqual(["MAT"]);
    expect(() => condition("int64", "soon", false)).toThrow("expected a number, a range");
  });
});

describe("the tree of nodes", () => {
  it("survives parents that are missing or their own", () => {
    const row = (id: number, name: string, parent: string, children: number[]) => ({
      row: id,
      id: String(id),
      node_name: name,
      parent_name: parent,
      children_ids: JSON.stringify(children),
      start_ts: id,
      end_ts: id + 1,
    });
    const roots = treeOf([
      row(0, "a", "", [1]),
      row(1, "a/b", "a", []),
      row(2, "a/c", "a", []),
      row(3, "z", "z", [3]),
      row(4, "q/r", "q", []),
    ]);
    expect(roots.map((node) => node.name)).toEqual(["a", "z", "q/r"]);
    expect(descendants(roots[0]).map((node) => node.short)).toEqual(["a", "b", "c"]);
  });
});

describe("frames", () => {
  // A canvas of no browser: the frame's pixels are looked at as they are handed over.
  class FakeImageData {
    readonly data: Uint8ClampedArray;
    readonly width: number;
    readonly height: number;
    constructor(width: number, height: number) {
      this.width = width;
      this.height = height;
      this.data = new Uint8ClampedArray(4 * width * height);
    }
  }
  globalThis.ImageData ??= FakeImageData as never;

  function pixelsOf(frame: Frame): Uint32Array {
    let pixels = new Uint32Array();
    frame.put({
      putImageData: (image: ImageData) => {
        pixels = new Uint32Array(image.data.buffer);
      },
    } as never);
    return pixels;
  }

  it("show bands, lines and curves where they are and the ground with its grid elsewhere", () => {
    const frame = new Frame();
    const [ground, grid, band, slice, curve] = [1, 2, 3, 4, 5].map((value) => (0xff000000 | value) >>> 0);
    for (let turn = 0; turn < 2; turn++) {
      frame.begin(10, 20, ground);
      frame.mark(7, grid);
      frame.band(-2, 2, band);
      frame.startLine();
      frame.fill(2, 5, slice);
      frame.copyLine(4, 7);
      frame.startCurve(10, 4, curve, 0.5);
      const tile = new Uint8Array(4 * TILE_COLUMNS);
      tile.fill(1, TILE_COLUMNS, 2 * TILE_COLUMNS);
      tile.fill(2, 2 * TILE_COLUMNS);
      frame.curve(tile, { offset: 0, ratio: 0.4, x0: 0, x1: 10 });
      const pixels = pixelsOf(frame);
      const at = (x: number, y: number) => pixels[10 * y + x];
      expect([at(0, 0), at(9, 1), at(0, 2), at(7, 3)]).toEqual([band, band, ground, grid]);
      expect([at(1, 4), at(2, 4), at(4, 6), at(5, 6), at(2, 7), at(7, 5)]).toEqual([
        ground,
        slice,
        slice,
        ground,
        ground,
        grid,
      ]);
      expect([at(0, 10), at(7, 10), at(0, 11), at(0, 12), at(0, 14)]).toEqual([
        ground,
        grid,
        curve,
        blend(curve, 0.5, ground),
        ground,
      ]);
      expect(at(7, 19)).toBe(grid);
    }
  });

  it("mix colours by share", () => {
    expect(colorOf("#102030")).toBe(0xff302010);
    expect(colorOf("#fa0")).toBe(0xff00aaff);
    expect(() => colorOf("red")).toThrow("#rrggbb");
    expect(blend(0xffffffff, 0.5, 0xff000000)).toBe(0xff7f7f7f);
    expect(blend(0xff123456, 1, 0xffabcdef)).toBe(0xff123456);
    expect(blend(0xff123456, 0, 0xffabcdef)).toBe(0xffabcdef);
  });
});

describe("rows of the hierarchy", () => {
  it("keep overlapping parts apart, up to four rows", () => {
    const part = (start: number, end: number) => ({ start, end });
    const { placed, rows } = inRows([part(0, 4), part(0, 10), part(4, 6), part(10, 12)]);
    expect(rows).toBe(2);
    expect(placed.map(({ node, row }) => [node.start, node.end, row])).toEqual([
      [0, 10, 0],
      [0, 4, 1],
      [4, 6, 1],
      [10, 12, 0],
    ]);
    expect(inRows(Array.from({ length: 9 }, () => part(0, 1))).rows).toBe(4);
    expect(inRows([]).rows).toBe(1);
  });
});

describe("text on colours", () => {
  it("can be read", () => {
    const luminance = (channels: number[]) =>
      [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => sum + weight * (channels[i] / 255) ** 2.2, 0);
    for (const dark of [false, true])
      for (let index = 0; index < 16; index++) {
        const ground = luminance(seriesColor(index, dark).match(/\d+/g)!.map(Number));
        const text = luminance(textOn(index, dark) === "#ffffff" ? [255, 255, 255] : [16, 21, 28]);
        const contrast = (Math.max(ground, text) + 0.05) / (Math.min(ground, text) + 0.05);
        expect(contrast, `colour ${index}, ${dark ? "dark" : "light"}`).toBeGreaterThan(4);
      }
  });
});

describe("regions", () => {
  const rows = [
    { row: 0, kernel_name: "second", start_ts: 20, end_ts: 50 },
    { row: 1, kernel_name: "first", start_ts: 0, end_ts: 20 },
    { row: 2, kernel_name: "empty", start_ts: 20, end_ts: 20 },
    { row: 3, kernel_name: "Second", start_ts: "60", end_ts: "70" },
  ];

  it("are the executions of kernels in the order of time", () => {
    expect(rowRegions(rows, "kernel_name").map(({ id, name, start, end }) => [id, name, start, end])).toEqual([
      ["0", "first", 0, 20],
      ["1", "second", 20, 50],
      ["2", "Second", 60, 70],
    ]);
  });

  it("are the parts of one level of the hierarchy", () => {
    const node = (id: number, name: string, parent: string, start: number, end: number, children: number[]) => ({
      row: id,
      id,
      node_name: name,
      parent_name: parent,
      start_ts: start,
      end_ts: end,
      children_ids: JSON.stringify(children),
    });
    const roots = treeOf([
      node(0, "m", "", 0, 100, [1, 2]),
      node(1, "m/b", "m", 50, 100, []),
      node(2, "m/a", "m", 0, 50, [3]),
      node(3, "m/a/op", "m/a", 5, 40, []),
    ]);
    expect(levelsOf(roots)).toBe(3);
    expect(hierarchyRegions(roots, 1).map((region) => region.name)).toEqual(["m/a", "m/b"]);
    expect(hierarchyRegions(roots, 2).map((region) => region.name)).toEqual(["m/a/op"]);
    expect(hierarchyRegions(roots, 3)).toEqual([]);
    expect(levelsOf([])).toBe(0);
  });

  it("are chosen by name, stride, offset and count", () => {
    const regions = Array.from({ length: 10 }, (_, i) => ({
      id: String(i),
      name: i % 2 ? `odd.${i}` : `even.${i}`,
      start: i,
      end: i + 1,
    }));
    const ids = (choice: object) => chosenRegions(regions, { ...NO_REGIONS, ...choice }).map((region) => region.id);
    expect(ids({})).toHaveLength(10);
    expect(ids({ text: "ODD" })).toEqual(["1", "3", "5", "7", "9"]);
    expect(ids({ text: "odd", stride: 2 })).toEqual(["1", "5", "9"]);
    expect(ids({ stride: 3, offset: 1, count: 2 })).toEqual(["1", "4"]);
    expect(ids({ stride: 0, offset: -3, count: -1 })).toHaveLength(10);
    expect(ids({ text: "none" })).toEqual([]);
  });

  it("have durations in bins that hold each of them once", () => {
    expect(distribution([])).toEqual([]);
    expect(distribution([5, 5])).toEqual([{ from: 5, to: 5, count: 2 }]);
    const next = random(3);
    const durations = Array.from({ length: 1000 }, () => next() * 1e6);
    const bins = distribution(durations, 7);
    expect(bins).toHaveLength(7);
    expect(bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(1000);
    for (const bin of bins.slice(0, 6))
      expect(bin.count).toBe(durations.filter((value) => value >= bin.from && value < bin.to).length);
  });

  it("are kept in an address, and one that nobody wrote counts as none", () => {
    const choice = { generator: "hierarchy" as const, level: 2, text: "a,b", stride: 3, offset: 1, count: 4 };
    expect(parseChoice(formatChoice(choice))).toEqual(choice);
    expect(formatChoice(NO_REGIONS)).toBeUndefined();
    for (const text of [undefined, "", "other,1,2", "none"]) expect(parseChoice(text)).toEqual(NO_REGIONS);
    expect(parseChoice("hierarchy,1e9").level).toBe(99);
    expect(parseChoice("kernels,-1,x,0,1.5")).toEqual({ ...NO_REGIONS, generator: "kernels" });
  });
});
