// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Drives the app in a browser (test/explorer/test_browser.py starts the server and this file).
// node browser.mjs '{"address", "token", "device", "system", "html", "pictures", "browser"}'; one line per case, exit 1 on failure.

import fs from "node:fs";
import path from "node:path";
import AxeBuilder from "@axe-core/playwright";
import { launch } from "./launch.mjs";

const options = JSON.parse(process.argv[2]);
const { context, page, folder } = await launch(options.browser, 1280, 800);
context.setDefaultTimeout(options.timeout ?? 60000);
const problems = [];
const expected = new Set();
page.on("console", (message) => {
  if (message.type() === "error" && ![...expected].some((text) => message.text().includes(text)))
    problems.push(message.text());
});
page.on("pageerror", (error) => problems.push(error.message));

let failed = 0;
async function check(name, run) {
  problems.length = 0;
  try {
    await run();
    if (problems.length) throw new Error(`the page reported: ${problems.join("; ")}`);
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok ${name}: ${String(error.message).split("\n").slice(0, 6).join(" | ")}`);
    if (options.pictures) await page.screenshot({ path: path.join(options.pictures, `failed-${failed}.png`) });
    // What is left open must not fail the next case as well.
    await page.reload();
  }
}

function equal(actual, wanted, what) {
  if (actual !== wanted)
    throw new Error(`${what}: expected ${JSON.stringify(wanted)} but got ${JSON.stringify(actual)}`);
}

function holds(condition, what) {
  if (!condition) throw new Error(what);
}

const panel = (name) => page.locator(`[data-panel=${name}]`);
const tab = (name) => page.getByRole("tab", { name, exact: true }).click();
const visit = async (names) => {
  for (const name of names) {
    await tab(name);
    await page.waitForTimeout(250);
  }
};
const ready = () => page.waitForSelector(".tl-lane");
const overlay = () => page.locator(".tl-overlay").first();
const url = (rest) => `${options.address}/#/${rest}`;
const until = (test, argument) => page.waitForFunction(test, argument, { timeout: options.timeout ?? 60000 });

async function open(rest) {
  // The same address with another hash would keep the page as it is.
  await page.goto("about:blank");
  await page.goto(url(rest));
}

/** Brings events to a width that can be clicked and selects one. */
async function selectOne() {
  await overlay().focus();
  await page.keyboard.press("ArrowRight");
  await panel("details").locator("h2").waitFor();
}

async function accessible(what) {
  const found = await new AxeBuilder({ page }).disableRules(["region", "landmark-one-main"]).analyze();
  const text = found.violations.map(
    (v) =>
      `${v.id} (${v.impact}): ${v.nodes
        .slice(0, 2)
        .map((node) => node.target.join(" "))
        .join(", ")}`,
  );
  holds(text.length === 0, `${what} is not accessible: ${text.join("; ")}`);
}

async function picture(name, clip) {
  if (options.pictures)
    await page.screenshot({ path: path.join(options.pictures, `${name}.png`), ...(clip ? { clip } : {}) });
}

await page.goto(`${options.address}/?token=${options.token}`);

await check("the profile manager lists, tags and stars", async () => {
  await page.getByRole("link", { name: options.device, exact: true }).waitFor();
  await page.getByRole("button", { name: `Favourite ${options.device}` }).click();
  await page.getByRole("button", { name: `Favourite ${options.device}`, pressed: true }).waitFor();
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: options.device, exact: true }) });
  await row.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Tags, with commas").filter({ visible: true }).fill("night, tuned");
  await page.getByRole("button", { name: "Save" }).filter({ visible: true }).click();
  await row.getByText("tuned").waitFor();
  await page.getByRole("button", { name: "Favourites" }).click();
  equal(await page.locator(".profiles tbody tr").count(), 1, "favourites");
  await page.getByRole("button", { name: "All", exact: true }).click();
  await accessible("the profile manager");
  await picture("profiles");
});

await check("uploads that cannot be processed are explained on the page", async () => {
  expected.add("400");
  const input = page.locator("input[type=file]").first();
  await input.setInputFiles([
    { name: "only.ntff", mimeType: "application/octet-stream", buffer: Buffer.from("no trace") },
  ]);
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await page.getByRole("alert").filter({ hasText: "expected a NEFF and an NTFF" }).waitFor();
  await page.getByText("UPLOADED").waitFor();
  const row = page.getByRole("row").filter({ hasText: "only" });
  await row.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete only" });
  holds(await dialog.getByRole("button", { name: "Delete" }).isDisabled(), "deleting needs the typed word");
  await dialog.getByLabel("Type delete to confirm").fill("delete");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  expected.clear();
});

await check("pairs that do not fit, cut files and other versions are explained on the page", async () => {
  for (const upload of options.uploads) {
    await page.locator("input[type=file]").first().setInputFiles(upload.files);
    await page.locator(".upload-fields input").first().fill(upload.name);
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    const row = page.getByRole("row").filter({ hasText: upload.name });
    await row.getByText("ERROR_PROCESS_INCOMPLETE").waitFor();
    await page.getByText(upload.message).first().waitFor();
  }
  await picture("mistakes");
  for (const upload of options.uploads) {
    const row = page.getByRole("row").filter({ hasText: upload.name });
    await row.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: `Delete ${upload.name}` });
    await dialog.getByLabel("Type delete to confirm").fill("delete");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
  }
});

await check("a session folder is uploaded and processed", async () => {
  await page.locator("input[type=file]").nth(1).setInputFiles(options.session);
  await page.locator(".upload-fields input").first().fill("uploaded");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await page.getByRole("link", { name: "uploaded", exact: true }).waitFor();
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "uploaded", exact: true }) });
  await row.getByText("PROCESSED").waitFor();
});

await check("a large profile shows its overview first, and the same picture when its events are there", async () => {
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  await context.route("**/drawn/slices", async (route) => {
    await released;
    await route.continue();
  });
  try {
    await lookAtOverview(release);
  } finally {
    release();
    await context.unroute("**/drawn/slices");
  }
  await selectOne();
});

async function lookAtOverview(release) {
  await open(`p/${options.large}`);
  const drawn = (name) => until((name) => performance.getEntriesByName(name).length > 0, name);
  await drawn("overview drawn");
  await page.locator(".tl-counter").first().waitFor();
  const counters = await page.locator(".tl-counter bdi").allInnerTexts();
  holds(counters.includes("Small DMA transfers"), `no warning of small transfers among ${counters}`);
  // The ground of the canvas is the panel's.
  const [ground, panelColor] = await page.evaluate(() => {
    const canvas = document.querySelector(".tl-canvas");
    // Beside the line of the grid at the start.
    const { data } = canvas.getContext("2d").getImageData(3, 0, 1, canvas.height);
    const pixels = Array.from({ length: canvas.height }, (_, y) => data.slice(4 * y, 4 * y + 3).join(", "));
    const color = getComputedStyle(document.querySelector(".tl-labels")).backgroundColor;
    return [pixels.filter((text) => `rgb(${text})` === color).length, color];
  });
  holds(ground > 0, `no pixel at the timeline's start has the panel's colour ${panelColor}`);
  // The mean brightness of each row of pixels.
  const seen = () =>
    page.evaluate(() => {
      const canvas = document.querySelector(".tl-canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const pixels = new Uint32Array(data.buffer);
      return Array.from({ length: canvas.height }, (_, y) => {
        let sum = 0;
        for (let x = 0; x < canvas.width; x++) {
          const pixel = pixels[y * canvas.width + x];
          sum += (pixel & 255) + ((pixel >> 8) & 255) + ((pixel >> 16) & 255);
        }
        return sum / canvas.width;
      });
    });
  const labels = () => page.locator(".tl-label bdi").allInnerTexts();
  const before = { rows: await seen(), labels: await labels() };
  equal(await page.evaluate(() => performance.getEntriesByName("slices drawn").length), 0, "events before their time");
  release();
  await drawn("slices drawn");
  await page.waitForTimeout(500);
  const after = { rows: await seen(), labels: await labels() };
  equal(after.labels.join(), before.labels.join(), "tracks");
  const brightness = Math.max(...after.rows) - Math.min(...after.rows);
  holds(brightness > 100, `nothing is drawn: ${brightness}`);
  const different = after.rows.filter((value, y) => Math.abs(value - before.rows[y]) > 60).length;
  holds(different < after.rows.length / 20, `${different} of ${after.rows.length} rows of pixels look different`);
}

await check("the device timeline shows its tracks and an event's details", async () => {
  await open(`p/${options.device}`);
  await ready();
  const labels = await page.locator(".tl-lane bdi").allInnerTexts();
  for (const engine of ["Tensor", "Vector", "Scalar", "GpSimd", "Sync"])
    holds(labels.includes(engine), `no track ${engine} among ${labels}`);
  const counters = await page.locator(".tl-counter bdi").allInnerTexts();
  for (const name of ["State Buffer Usage", "Pending DMA Count", "HBM Throughput", "Estimated Instant MFU"])
    holds(counters.includes(name), `no track ${name} among ${counters}`);
  // Each is the work of several engines, whose shares are below the limit.
  holds(!counters.includes("Small DMA transfers"), "a warning of transfers that are large");
  await selectOne();
  await panel("details").getByText("Duration", { exact: true }).waitFor();
  holds(
    page.url().includes("sel=Instruction") || (await until(() => location.hash.includes("sel=Instruction"))),
    "the address names the selection",
  );
});

await check("dependencies lead to the other event and back", async () => {
  // An event that waits for another one, as the table of edges says; its row is its id.
  const edges = await page.evaluate(async ({ device, deviceProfile }) => {
    const answer = await fetch(`api/profiles/${device}/${deviceProfile}/rows/Flow?limit=200`);
    return (await answer.json()).rows.filter(
      (row) => row.in_table === "Instruction" && row.out_table === "Instruction",
    );
  }, options);
  await open(`p/${options.device}/${options.deviceProfile}?sel=Instruction:${edges[0].out_id}`);
  await ready();
  await page.getByRole("tab", { name: "Dependencies" }).click();
  const sections = panel("details").locator("section");
  await sections.first().locator(".card-button").first().click();
  await until((id) => location.hash.includes(`sel=Instruction:${id}`), edges[0].in_id);
  await page.getByRole("tab", { name: "Dependencies" }).click();
  await sections.nth(1).locator(".card-button").first().waitFor();
});

await check("keys move, zoom and clear", async () => {
  await overlay().focus();
  await page.keyboard.press("0");
  await page.waitForTimeout(500);
  const span = () => page.locator(".toolbar .span").innerText();
  const whole = await span();
  await page.keyboard.press("w");
  await until((text) => document.querySelector(".toolbar .span").textContent !== text, whole);
  const zoomed = await span();
  await page.keyboard.press("d");
  await until((text) => document.querySelector(".toolbar .span").textContent !== text, zoomed);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("f");
  await until((text) => document.querySelector(".toolbar .span").textContent !== text, zoomed);
  holds((await page.locator(".timeline [aria-live]").innerText()).includes("lasts"), "the selection is read out");
  await page.keyboard.press("Escape");
  await panel("details").getByText("Nothing is selected").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys and pointer" }).waitFor();
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await page.keyboard.press("0");
  await page.waitForTimeout(400);
});

await check("a box gives sums of what is inside", async () => {
  const box = await overlay().boundingBox();
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 100, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await panel("statistics").getByRole("button", { name: "Box", pressed: true }).waitFor();
  const instructions = panel("statistics").locator(".figure", { hasText: "Instructions" }).locator(".figure-value");
  await instructions.waitFor();
  holds(Number((await instructions.innerText()).replaceAll(",", "")) > 0, "instructions inside the box");
  await panel("statistics").getByRole("button", { name: "Whole profile" }).click();
  await page.waitForTimeout(600);
  await page.keyboard.press("Escape");
});

await check("operators, hierarchy and highlights", async () => {
  await tab("Operators");
  const rows = panel("operators").locator(".table-row");
  await rows.first().waitFor();
  // Only rows in view are in the page; the grid tells how many there are.
  const before = Number(await panel("operators").getByRole("grid").getAttribute("aria-rowcount"));
  await panel("operators").locator(".twisty[aria-expanded=false]").first().click();
  await until((count) => document.querySelector("[data-panel=operators] [role=grid]").ariaRowCount > count, before);
  await rows.nth(1).click();
  await page.locator(".toolbar .chip").waitFor();
  await tab("Hierarchy");
  await panel("hierarchy").locator(".icicle-level button").first().waitFor();
  await picture("hierarchy");
  await page.locator(".toolbar .chip").click();
  await page.getByLabel("Colour by").first().selectOption("kernel");
  await page.getByRole("button", { name: "Fit", exact: true }).click();
});

await check("roofline points lead to the timeline", async () => {
  await tab("Roofline");
  await panel("roofline").locator("circle.point").first().waitFor();
  await panel("roofline").getByRole("gridcell").first().click();
  await page.locator(".toolbar .chip").waitFor();
  await picture("roofline");
  await page.locator(".toolbar .chip").click();
});

await check("critical path and what-if", async () => {
  await tab("Critical path");
  await panel("critical").locator(".table-row").first().click();
  await page.locator(".tl-overlay").first().waitFor();
  await picture("critical-path");
});

await check("source lines and instructions lead to one another", async () => {
  await tab("Source");
  await panel("source").locator(".cm-content").waitFor();
  await panel("source").locator(".line-note").nth(1).waitFor();
  await overlay().focus();
  await page.keyboard.press("ArrowRight");
  const found = panel("source").locator(".marked-line");
  for (let i = 0; i < 8 && !(await found.count()); i++) {
    await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(250);
  }
  await found.first().waitFor();
  await picture("source");
});

await check("an instruction of a repeated layer leads to its own line of each phase and of the source", async () => {
  const row = await page.evaluate(async ({ device, deviceProfile, layer }) => {
    const answer = await fetch(`api/profiles/${device}/${deviceProfile}/rows/Instruction?limit=5000`);
    return (await answer.json()).rows.find((row) => row.opcode === "MATMUL" && row.layer === layer);
  }, options);
  await open(`p/${options.device}/${options.deviceProfile}?sel=Instruction:${row.id}`);
  await ready();
  await tab("Details");
  await panel("details").getByText(options.layer, { exact: true }).first().waitFor();
  await tab("IR");
  for (const [phase, operation] of [
    ["import", "neuron.contract"],
    ["schedule", "nisa.matmul"],
  ]) {
    await panel("ir").getByRole("button", { name: phase, exact: true }).click();
    await panel("ir").locator(".marked-line").filter({ hasText: operation }).first().waitFor();
  }
  await picture("ir");
  // And back: the layer's line, which the text has once, leads to all four runs.
  await panel("ir").locator(".marked-line").filter({ hasText: "nisa.matmul" }).first().click();
  await page.locator(".toolbar .chip").waitFor();
  await page.locator(".toolbar .chip").click();
  // What was emitted of it leads to the instruction itself.
  await panel("ir").getByRole("button", { name: "emit", exact: true }).click();
  await overlay().focus();
  await page.keyboard.press("Escape");
  await panel("ir").locator(".marked-line").filter({ hasText: "matmul" }).first().click();
  await until(() => /sel=Instruction:\d+/.test(location.hash));
  await tab("Details");
  await panel("details").getByText("MATMUL", { exact: true }).first().waitFor();
  await open(`p/${options.device}/${options.deviceProfile}?sel=Instruction:${row.id}`);
  await ready();
  await tab("Source");
  await panel("source").locator(".marked-line").filter({ hasText: options.sourceText }).first().waitFor();
});

await check("memory and IR", async () => {
  await tab("Memory");
  await panel("memory").locator("canvas").waitFor();
  await page.getByRole("button", { name: "Fit", exact: true }).click();
  await page.waitForTimeout(400);
  await picture("memory");
  await tab("IR");
  await panel("ir").locator(".cm-content").waitFor();
  const phases = panel("ir").getByRole("group", { name: "Phase" }).getByRole("button");
  holds((await phases.count()) > 1, "several phases");
  await phases.first().click();
});

await check("annotations are kept, differ and snap", async () => {
  await tab("Annotations");
  await panel("annotations").getByRole("button", { name: "Create" }).click();
  await overlay().focus();
  await page.keyboard.press("m");
  await until(() => document.querySelectorAll("[data-panel=annotations] tbody tr").length === 2);
  await panel("annotations").getByRole("button", { name: "Diff", exact: true }).first().click();
  await panel("annotations").getByText("base").waitFor();
  await panel("annotations").getByRole("button", { name: "Snap" }).first().click();
  await page.waitForTimeout(400);
  await page.reload();
  await ready();
  await tab("Annotations");
  await until(() => document.querySelectorAll("[data-panel=annotations] tbody tr").length === 2);
  await panel("annotations").getByRole("button", { name: "Clear all" }).click();
});

await check("regions are generated, drawn, compared and summed up", async () => {
  await page.getByRole("button", { name: "Fit", exact: true }).click();
  await tab("Regions");
  const regions = panel("regions");
  await regions.getByLabel("Generator").selectOption("kernels");
  await regions.locator(".table-row").first().waitFor();
  await regions.getByText("Annotation region duration distribution").waitFor();
  const kernels = Number(await regions.getByRole("grid").getAttribute("aria-rowcount"));
  await regions.getByLabel("Generator").selectOption("hierarchy");
  await regions.getByLabel("Level").selectOption("1");
  await until(() => document.querySelectorAll("[data-panel=regions] input[type=checkbox]").length > 0);
  const all = Number(await regions.getByRole("grid").getAttribute("aria-rowcount"));
  holds(all > 2 && kernels > 1, `regions of kernels and modules: ${kernels - 1}, ${all - 1}`);
  await regions.getByLabel("Count").fill("1");
  await until((few) => document.querySelector("[data-panel=regions] [role=grid]").ariaRowCount < few, all);
  await regions.getByLabel("Count").fill("0");
  for (const place of [0, 1]) await regions.getByRole("checkbox").nth(place).check();
  const side = regions.getByRole("table", { name: "Regions side by side" });
  await side.waitFor();
  equal(await side.locator("th").count(), 3, "columns side by side");
  holds((await side.getByRole("row").filter({ hasText: "HBM read" }).count()) === 1, "metrics side by side");
  await picture("regions");
  await accessible("the regions");
  holds(page.url().includes("regions=hierarchy"), "the address keeps the regions");
  await page.reload();
  await ready();
  await page.getByRole("link", { name: "Summary" }).click();
  const menu = page.getByLabel("Region", { exact: true });
  await menu.waitFor();
  await until(() => document.querySelectorAll(".region-menu option").length > 6);
  await menu.selectOption({ index: 2 });
  await page.getByText("an event across its edge counts").waitFor();
  await picture("summary-region");
  await menu.selectOption("");
  await page.getByRole("heading", { name: "Insights" }).waitFor();
  await page.getByRole("link", { name: "Analysis" }).click();
  await ready();
  await tab("Regions");
  await regions.getByLabel("Generator").selectOption("collectives");
  await regions.getByText("holds no collective operations").waitFor();
  await regions.getByLabel("Generator").selectOption("none");
  await regions.getByText("No regions").waitFor();
});

await check("tensors and tables", async () => {
  await tab("Tensors");
  await panel("tensors").locator(".table-row").first().waitFor();
  await tab("Tables");
  await panel("tables").getByRole("combobox", { name: "Table" }).selectOption("Summary");
  await panel("tables").getByRole("button", { name: "hardware_flops", exact: true }).waitFor();
});

await check("a deep link restores view and selection", async () => {
  await tab("Details");
  await overlay().focus();
  await page.keyboard.press("0");
  await page.waitForTimeout(400);
  await page.keyboard.press("Escape");
  await selectOne();
  await page.keyboard.press("f");
  await until(() => location.hash.includes("t=") && location.hash.includes("sel="));
  await page.waitForTimeout(500);
  const before = await page.evaluate(() => ({
    hash: location.hash,
    span: document.querySelector(".toolbar .span").textContent,
    title: document.querySelector("[data-panel=details] h2").textContent,
  }));
  await page.goto("about:blank");
  await page.goto(`${options.address}/${before.hash}`);
  await ready();
  await panel("details").locator("h2").waitFor();
  await until((span) => document.querySelector(".toolbar .span").textContent === span, before.span);
  equal(await panel("details").locator("h2").innerText(), before.title, "the selected event");
});

for (const theme of ["light", "dark"]) {
  await check(`every panel is accessible, ${theme}`, async () => {
    await page.getByLabel("Theme").selectOption(theme);
    await page.getByRole("button", { name: "Fit", exact: true }).click();
    await visit(["Operators", "Roofline", "Critical path", "Memory", "Selection", "Tensors", "Search", "Source"]);
    await page.waitForTimeout(500);
    await accessible("the analysis page");
    await tab("Details");
    await tab("Operators");
    await picture(`device-${theme}`);
    await page.getByRole("link", { name: "Summary" }).click();
    await page.getByRole("heading", { name: "Compute performance" }).waitFor();
    await accessible("the summary");
    await picture(`summary-${theme}`);
    await page.getByRole("link", { name: "Analysis" }).click();
  });
}
await page.getByLabel("Theme").selectOption("light");

await check("the system timeline has six groupings", async () => {
  await open(`p/${options.system}/system`);
  await ready();
  const seen = new Map();
  for (const name of ["CPU vs Device", "NeuronCore", "Thread", "Process", "Instance", "Default"]) {
    await page.getByLabel("Group by").selectOption(name);
    await page.waitForTimeout(200);
    seen.set(name, await page.locator(".tl-lane bdi").allInnerTexts());
  }
  holds(
    seen.get("Default").some((label) => /\/PID:\d+\/framework\/TID:\d+$/.test(label)),
    `Default: ${seen.get("Default")}`,
  );
  holds(
    seen.get("Default").some((label) => /\/PID:\d+\/neuron_rt\/NC:\d+$/.test(label)),
    `Default: ${seen.get("Default")}`,
  );
  holds(
    seen.get("Default").some((label) => /\/PID:\d+\/neuron_hw\/NC\d+/.test(label)),
    `Default: ${seen.get("Default")}`,
  );
  holds(
    seen.get("CPU vs Device").some((label) => /\/Worker:\d+\/neuron_hw$/.test(label)),
    `CPU vs Device: ${seen.get("CPU vs Device")}`,
  );
  holds(
    seen.get("Process").every((label) => /\/PID:\d+$/.test(label)),
    `Process: ${seen.get("Process")}`,
  );
});

await check("from an operator to its execution on the device in three clicks", async () => {
  await page.keyboard.press("/");
  await page.getByRole("searchbox", { name: "Value" }).fill(options.operator);
  await page.keyboard.press("Enter");
  await panel("search").locator(".table-row").first().waitFor();
  await tab("Dependency chain");
  const heading = panel("chain").locator("h2");
  await heading.waitFor();
  let clicks = 0;
  while ((await heading.innerText()) !== "nc_exec_running") {
    holds(clicks < 3, `three clicks led to ${await heading.innerText()}`);
    const downstream = panel("chain").locator("section").nth(1);
    await downstream.locator("tbody tr").first().waitFor();
    const hardware = downstream.getByRole("button", { name: "nc_exec_running" });
    const before = `${await heading.innerText()} ${await page.evaluate(() => location.hash)}`;
    await ((await hardware.count()) ? hardware.first() : downstream.locator("button.link").last()).click();
    clicks++;
    await until(
      (text) => `${document.querySelector("[data-panel=chain] h2")?.textContent} ${location.hash}` !== text,
      before,
    );
    await page.waitForTimeout(400);
  }
  // Arrows show the whole chain; back at the operator three of them.
  await picture("dependency-chain");
  await accessible("the system page");
});

await check("an execution leads to its device profile", async () => {
  await tab("Details");
  await panel("details").getByRole("link", { name: "Open the device profile" }).click();
  await page.getByRole("tab", { name: "Device timeline" }).waitFor();
  await ready();
  // The program of the operator that was searched for, not any other of that core.
  const shown = await page.getByLabel("Part of the profile").inputValue();
  holds(
    shown.startsWith(`${options.operator.replace("::", "_")}.Tensor_`),
    `the execution of ${options.operator} led to ${shown}`,
  );
  await open(`p/${options.system}/system`);
  await ready();
  await tab("Device profiles");
  await panel("devices").getByRole("link", { name: options.systemDevice }).click();
  await page.getByRole("tab", { name: "Device timeline" }).waitFor();
});

await check("comparison of two profiles", async () => {
  await open(`compare?a=${options.device}/${options.deviceProfile}&b=${options.system}/${options.systemDevice}`);
  await page.locator(".compare-timeline .tl-lane").first().waitFor();
  equal(await page.locator(".compare-timeline").count(), 2, "timelines");
  await page.getByRole("grid", { name: "Metrics" }).locator(".table-row").first().waitFor();
  await page.getByRole("combobox", { name: /^Zoom/ }).selectOption("synchronised");
  await page.locator(".compare-timeline .tl-overlay").first().focus();
  await page.keyboard.press("w");
  await page.getByRole("button", { name: "Swap base" }).click();
  await picture("comparison");
  await accessible("the comparison");
});

await check("4K and a small window", async () => {
  await page.setViewportSize({ width: 3840, height: 2160 });
  await open(`p/${options.device}`);
  await ready();
  equal(
    await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
    false,
    "scrolling sideways at 4K",
  );
  await page.setViewportSize({ width: 1280, height: 800 });
  equal(
    await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
    false,
    "scrolling sideways at 1280",
  );
});

await check("wrong addresses are explained", async () => {
  expected.add("404");
  expected.add("400");
  await open("p/no-such-profile");
  await page.getByRole("alert").filter({ hasText: "no profile is called" }).waitFor();
  expected.clear();
});

if (options.html) {
  await check("the HTML file opens from a disk and asks for nothing", async () => {
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.goto("about:blank");
    await page.goto(`file://${options.html}`);
    await ready();
    await page.getByLabel("Part of the profile").selectOption(options.systemDevice);
    await page.getByRole("tab", { name: "Device timeline" }).waitFor();
    await ready();
    await selectOne();
    await page.getByRole("tab", { name: "Dependencies" }).click();
    await visit(["Operators", "Roofline", "Critical path", "Memory", "Selection", "Tensors", "Tables", "Source"]);
    await tab("Regions");
    await panel("regions").getByLabel("Generator").selectOption("kernels");
    await panel("regions").getByRole("checkbox").first().check();
    await panel("regions").getByRole("table", { name: "Regions side by side" }).waitFor();
    await panel("source").locator(".cm-content").waitFor();
    await page.keyboard.press("/");
    await page.getByRole("searchbox", { name: "Value" }).fill("a");
    await page.keyboard.press("Enter");
    await panel("search").locator(".table-row").first().waitFor();
    await page.getByRole("link", { name: "Summary" }).click();
    await page.getByRole("heading", { name: "Compute performance" }).waitFor();
    await page.getByLabel("Region", { exact: true }).selectOption({ index: 2 });
    await page.getByText("an event across its edge counts").waitFor();
    const foreign = requests.filter((address) => !/^(file|blob|data|about):/.test(address));
    equal(foreign.length, 0, `requests: ${foreign}`);
    equal(requests.filter((address) => address.startsWith("file:")).length, 1, "files that were read");
  });
}

await context.close();
fs.rmSync(folder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
