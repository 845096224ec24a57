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

/** Processor time of the browser's processes so far, in ms: what a busy machine does not change. */
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
  let ticks = 0;
  for (const [name, entry] of found) if (isOurs(name)) ticks += entry.ticks;
  return ticks * 10;
}

for (const [width, height] of options.sizes) {
  const { context, page, folder } = await launch(options.browser, width, height);
  page.setDefaultTimeout(120000);
  // From the navigation to the frame after the one that drew the events.
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelector(".tl-lane"))
        requestAnimationFrame(() => requestAnimationFrame(() => (window.firstPaint = performance.now())));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const paints = [];
  const paintWork = [];
  for (let turn = 0; turn < 3; turn++) {
    await page.goto("about:blank");
    const before = processorTime(folder);
    await page.goto(`${options.address}/#/p/${options.profile}`);
    await page.waitForFunction(() => window.firstPaint);
    paintWork.push(processorTime(folder) - before);
    paints.push(await page.evaluate(() => window.firstPaint));
  }
  await page.waitForTimeout(1500);
  const idle = await page.evaluate(async (count) => {
    const times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < count; i++) {
      const now = await new Promise(requestAnimationFrame);
      times.push(now - last);
      last = now;
    }
    return times;
  }, options.frames);
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
      const work = (processorTime(folder) - before) / options.frames;
      frames[`${gesture} ${name}`] = { median: median(times), high: high(times), work };
    }
  }
  results.push({
    width,
    height,
    firstPaint: median(paints),
    paintWork: median(paintWork),
    idle: median(idle),
    frames,
  });
  await context.close();
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log(JSON.stringify(results));
