// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Takes the pictures of docs/Profiling.md and docs/Explorer.md from a running `neuron-explorer view`:
// node pictures.mjs '{"address", "out", "naive", "compiled", "model"}', the last three names of its profiles.

import fs from "node:fs";
import path from "node:path";
import { launch } from "./launch.mjs";

const options = JSON.parse(process.argv[2]);
const { context, page, folder } = await launch(options.browser, 1280, 720);
context.setDefaultTimeout(120000);
page.on("pageerror", (error) => console.log("the page reported:", error.message));
fs.mkdirSync(options.out, { recursive: true });

const panel = (name) => page.locator(`[data-panel=${name}]`);
const tab = (name) => page.getByRole("tab", { name, exact: true }).click();
const shoot = async (name) => {
  await page.mouse.move(5, 5);
  await page.waitForTimeout(700);
  await page.screenshot({ path: path.join(options.out, `${name}.png`) });
  console.log(name);
};
const open = async (rest) => {
  await page.goto("about:blank");
  await page.goto(`${options.address}/#/${rest}`);
  await page.waitForSelector(".tl-lane");
};
const ask = (address) => page.evaluate(async (asked) => (await fetch(asked)).json(), address);
const rows = async (profile, device, table) =>
  (await ask(`api/profiles/${profile}/${encodeURIComponent(device)}/rows/${table}?limit=5000`)).rows;
const theme = (name) => page.getByLabel("Theme").selectOption(name);

await page.goto(options.address);
await theme("light");

// Part 1: six executions with gaps, and the chain of one operator.
const events = await rows(options.naive, "system", "SystemProfileEvents");
const base = events.map((row) => BigInt(row.start_ts)).reduce((a, b) => (a < b ? a : b));
const since = (value) => Number(BigInt(value) - base);
const running = events.filter((row) => row.name === "nc_exec_running");
const from = Math.min(...running.map((row) => since(row.start_ts)));
const to = Math.max(...running.map((row) => since(row.end_ts)));
const margin = (to - from) * 0.1;
await open(`p/${options.naive}/system?t=${from - margin * 2},${to + margin}`);
await shoot("rmsnorm-naive-system");
const first = events.find((row) => row.name === "aten::mul");
await open(
  `p/${options.naive}/system?t=${from - margin * 2},${from + (to - from) / 3}&sel=SystemProfileEvents:${first.id}`,
);
await tab("Dependency chain");
await shoot("rmsnorm-dependency-chain");

// Part 2: inside the one execution of the compiled function.
const { devices } = await ask(`api/profiles/${options.compiled}`);
await open(`p/${options.compiled}/${devices[0]}`);
await shoot("rmsnorm-compiled-device");
await tab("Roofline");
await tab("Source");
await shoot("rmsnorm-roofline-source");
await tab("Critical path");
await tab("IR");
await shoot("rmsnorm-critical-path");

// A model with repeated layers.
const model = (await ask(`api/profiles/${options.model}`)).devices.find((name) => name.startsWith("model"));
const matmul = (await rows(options.model, model, "Instruction")).find(
  (row) => row.opcode === "MATMUL" && /2\..*up$/.test(row.layer ?? ""),
);
for (const [name, file] of [
  ["light", "device-light"],
  ["dark", "device-dark"],
]) {
  await theme(name);
  await open(`p/${options.model}/${model}?sel=Instruction:${matmul.id}`);
  await page.getByRole("button", { name: "Fit", exact: true }).click();
  await tab("IR");
  await panel("ir").locator(".marked-line").first().waitFor();
  await tab("Hierarchy");
  await shoot(file);
}
await page.getByRole("link", { name: "Summary" }).click();
await page.getByRole("heading", { name: "Compute performance" }).waitFor();
await shoot("summary-dark");
await theme("light");
await open(`p/${options.model}/${model}`);
await tab("Memory");
await tab("Operators");
await tab("Memory");
await shoot("memory");
await tab("Regions");
await panel("regions").getByLabel("Generator").selectOption("hierarchy");
await panel("regions").getByLabel("Level").selectOption("1");
for (const place of [0, 1]) await panel("regions").getByRole("checkbox").nth(place).check();
await panel("regions").getByRole("table", { name: "Regions side by side" }).waitFor();
await shoot("regions");
await open(`compare?a=${options.model}/${model}&b=${options.compiled}/${devices[0]}`);
await page.getByRole("grid", { name: "Metrics" }).locator(".table-row").first().waitFor();
await shoot("comparison");

await context.close();
fs.rmSync(folder, { recursive: true, force: true });
