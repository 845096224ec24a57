// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

/** Starts a headless browser with a profile folder of its own, which the caller removes. */
export async function launch(browser, width, height) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "explorer-browser-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: browser ?? "/usr/bin/chromium",
    headless: true,
    viewport: { width, height },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  return { context, page: context.pages()[0], folder };
}
