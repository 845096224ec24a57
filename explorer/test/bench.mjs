// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// First paint and frame times of a device profile (bench/explorer.py starts the server and this file).
// node bench.mjs '{"address", "profile", "browser", "sizes": [[1280, 800], ...], "frames"}' prints JSON.

import fs from "node:fs";
import { launch } from "./launch.mjs";

const options = JSON.parse(process.argv[2]);
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const high = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
const results = [];

/** Processor time of each of the browser's processes so far, in ms: what a busy machine does not change. */
function processorTime(folder) {
  const found = new Map();
  for (const name of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const text = fs.readFileSync(`/proc/${name}/stat`, "latin1");
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      found.set(name, { parent: fields[1], ticks: Number(fields[11]) + Number(fields[12]) });
    } catch {
      // It has ended.
    }
  }
  const own = (name) => {
    try {
      return fs.readFileSync(`/proc/${name}/cmdline`, "latin1").includes(folder);
    } catch {
      return false;
    }
  };
  const isOurs = (name) => found.has(name) && (own(name) || isOurs(found.get(name).parent));
  return new Map([...found].filter(([name]) => isOurs(name)).map(([name, entry]) => [name, entry.ticks * 10]));
}

/** Since then; processes that have ended meanwhile do not count. */
function workSince(before, folder) {
  let sum = 0;
  for (const [name, ticks] of processorTime(folder)) sum += ticks - (before.get(name) ?? 0);
  return sum;
}

/** Times of frames at rest, or of frames that fill a canvas. */
function frameTimes(page, selector) {
  return page.evaluate(
    async ({ selector, count }) => {
      const canvas = selector && document.querySelector(selector);
      const context = canvas?.getContext("2d", { alpha: false });
      const times = [];
      let last = await new Promise(requestAnimationFrame);
      for (let i = 0; i < count; i++) {
        if (context) {
          context.fillStyle = i % 2 ? "#204060" : "#c0d0e0";
          context.fillRect(0, 0, canvas.width, canvas.height);
        }
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
      }
      return times;
    },
    { selector, count: options.frames },
  );
}

for (const [width, height] of options.sizes) {
  const { context, page, folder } = await launch(options.browser, width, height);
  page.setDefaultTimeout(120000);
  // From the navigation to the frame after the one that drew the profile: all tracks at the resolution of the screen,
  // and the same with every event in the browser.
  await page.addInitScript(() => {
    const look = () => {
      for (const [name, mark] of [
        ["firstPaint", "overview drawn"],
        ["allEvents", "slices drawn"],
      ])
        if (window[name] === undefined && performance.getEntriesByName(mark).length) {
          window[name] = Number.NaN;
          requestAnimationFrame(() => requestAnimationFrame(() => (window[name] = performance.now())));
        }
      if (!(window.allEvents > 0)) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const idle = await frameTimes(page, null);
  await page.setContent(`<body style="margin:0"><canvas width="${width}" height="${height}"></canvas>`);
  // What a frame costs at least that changes the whole window.
  const before = processorTime(folder);
  const filled = await frameTimes(page, "canvas");
  const fill = { median: median(filled), work: workSince(before, folder) / options.frames };
  const paints = [];
  const paintWork = [];
  const complete = [];
  for (let turn = 0; turn < 3; turn++) {
    await page.goto("about:blank");
    const before = processorTime(folder);
    await page.goto(`${options.address}/#/p/${options.profile}`);
    await page.waitForFunction(() => window.firstPaint > 0);
    paintWork.push(workSince(before, folder));
    paints.push(await page.evaluate(() => window.firstPaint));
    await page.waitForFunction(() => window.allEvents > 0);
    complete.push(await page.evaluate(() => window.allEvents));
  }
  await page.waitForTimeout(1500);
  const frames = {};
  for (const [name, share] of [
    ["all", 1],
    ["5 %", 0.05],
    ["0.05 %", 0.0005],
  ]) {
    for (const gesture of ["pan", "zoom"]) {
      await page.evaluate(
        async ({ share }) => {
          const canvas = document.querySelector(".tl-overlay");
          const box = canvas.getBoundingClientRect();
          const wheel = (deltaY, keys) =>
            canvas.dispatchEvent(
              new WheelEvent("wheel", {
                deltaY,
                bubbles: true,
                cancelable: true,
                clientX: box.left + box.width / 2,
                clientY: box.top + 60,
                ...keys,
              }),
            );
          canvas.focus();
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
          await new Promise((resolve) => setTimeout(resolve, 400));
          // exp(deltaY * 0.002) is the factor of one step.
          if (share < 1) wheel(Math.log(share) / 0.002, { ctrlKey: true });
          await new Promise((resolve) => setTimeout(resolve, 300));
          window.wheel = wheel;
        },
        { share },
      );
      const before = processorTime(folder);
      const times = await page.evaluate(
        async ({ gesture, count }) => {
          const { wheel } = window;
          const frame = () => new Promise(requestAnimationFrame);
          const times = [];
          let last = await frame();
          for (let i = 0; i < count; i++) {
            if (gesture === "pan") wheel(i < count / 2 ? 37 : -37, { shiftKey: true });
            else wheel(i < count / 2 ? -40 : 40, { ctrlKey: true });
            const now = await frame();
            times.push(now - last);
            last = now;
          }
          return times;
        },
        { gesture, count: options.frames },
      );
      const work = workSince(before, folder) / options.frames;
      frames[`${gesture} ${name}`] = { median: median(times), high: high(times), work };
    }
  }
  results.push({
    width,
    height,
    firstPaint: median(paints),
    paintWork: median(paintWork),
    allEvents: median(complete),
    idle: median(idle),
    fill,
    frames,
  });
  await context.close();
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log(JSON.stringify(results));
