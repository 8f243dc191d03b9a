import { defineConfig } from "vite";

export default defineConfig({
  build: { outDir: "../../dist/example-page", emptyOutDir: true },
  preview: { host: "127.0.0.1", port: 5173, strictPort: true },
});
