import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** `npx vite web` serves the sources while one works on them; a service on port 4000 answers behind it. */
export default defineConfig({
  plugins: [react()],
  build: { outDir: "../dist/web", emptyOutDir: true, assetsInlineLimit: 0 },
  server: { proxy: { "/graphql": { target: "http://127.0.0.1:4000", ws: true } } },
});
