// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// Two builds of the same sources: files for the server, and one HTML file that `neuron_explorer.html` fills with a profile.
export default defineConfig(({ mode }) => {
  const single = mode === "single";
  return {
    base: "./",
    define: { __SINGLE_FILE__: JSON.stringify(single) },
    plugins: single ? [viteSingleFile({ removeViteModuleLoader: true })] : [],
    build: {
      outDir: single ? "dist/single" : "dist/web",
      emptyOutDir: true,
      target: "es2023",
      chunkSizeWarningLimit: 1200,
      reportCompressedSize: false,
    },
  };
});
