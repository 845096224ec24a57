// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** Lets the browser fetch the app while it reads the small file that asks for the app's data and then for the app. */
const preload: Plugin = {
  name: "preload-app",
  transformIndexHtml: {
    order: "post",
    handler: (_, { bundle }) =>
      Object.values(bundle ?? {}).flatMap((chunk) =>
        chunk.type === "chunk" && chunk.name === "start"
          ? [
              {
                tag: "link",
                attrs: { rel: "modulepreload", crossorigin: "", href: `./${chunk.fileName}` },
                injectTo: "head" as const,
              },
              ...[...(chunk.viteMetadata?.importedCss ?? [])].map((file) => ({
                tag: "link",
                attrs: { rel: "preload", as: "style", crossorigin: "", href: `./${file}` },
                injectTo: "head" as const,
              })),
            ]
          : [],
      ),
  },
};

// Two builds of the same sources: files for the server, and one HTML file that `neuron_explorer.html` fills with a profile.
export default defineConfig(({ mode }) => {
  const single = mode === "single";
  return {
    base: "./",
    define: { __SINGLE_FILE__: JSON.stringify(single) },
    plugins: single ? [viteSingleFile({ removeViteModuleLoader: true })] : [preload],
    build: {
      outDir: single ? "dist/single" : "dist/web",
      emptyOutDir: true,
      target: "es2023",
      chunkSizeWarningLimit: 1200,
      reportCompressedSize: false,
    },
  };
});
