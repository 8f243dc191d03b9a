import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** `npx vite web` serves the sources while one works on them; a service on port 4000 answers behind it. */
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../dist/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // As docs/api.md promises: Vite's own default moves on. It is of the syntax; what else a browser lacks a test of the page holds.
    target: ["chrome111", "firefox116", "safari16.4"],
  },
  server: { proxy: { "/graphql": { target: "http://127.0.0.1:4000", ws: true } } },
});
