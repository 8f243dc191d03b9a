import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** GraphiQL, apart from the product's page: what an integrator tries operations in is in no bundle of a user. */
export default defineConfig({
  base: "/graphiql/",
  plugins: [react()],
  build: { outDir: "../../dist/explorer", emptyOutDir: true, assetsInlineLimit: 0, chunkSizeWarningLimit: 1_500 },
});
