const { availableParallelism } = require("node:os");

// Packages that exist as ESM only: on Node 20 jest cannot require() them untransformed.
const esmOnly = ["jose", "p-limit", "yocto-queue", "fast-check", "pure-rand"];
const swc = [
  "@swc/jest",
  {
    swcrc: false,
    jsc: {
      parser: { syntax: "typescript", decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: false, useDefineForClassFields: false },
      target: "es2022",
    },
    module: { type: "commonjs" },
    sourceMaps: "inline",
  },
];

module.exports = {
  // One more than there are cores, for many tests wait for a child process or a lease; beyond four, they would wait for PostgreSQL's connections.
  maxWorkers: Math.min(4, availableParallelism() + 1),
  // A process keeps something of each file that it has run: a new one takes its place before that makes it slow.
  workerIdleMemoryLimit: "1GB",
  testEnvironment: "node",
  roots: ["<rootDir>/test"],
  testMatch: ["**/*.test.ts"],
  // They need a browser and the built page: `npm run test:web`.
  testPathIgnorePatterns: ["/node_modules/", "/test/web/"],
  transform: { "^.+\\.(t|j|mj)s$": swc },
  transformIgnorePatterns: [`/node_modules/(?!(?:.*/)?(?:${esmOnly.join("|")})/)`],
  globalSetup: "<rootDir>/test/support/global-setup.ts",
  globalTeardown: "<rootDir>/test/support/global-teardown.ts",
  reporters: ["default", "<rootDir>/test/support/tally-reporter.js"],
  testTimeout: 60_000,
};
