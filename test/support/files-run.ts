import { Session } from "node:inspector/promises";
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const SOURCES = resolve(__dirname, "../../src");

/** What the compiler makes of an export: a getter, which runs where a mere name is used. */
const isExport = (functionName: string) => functionName === "get" || functionName.startsWith("get ");

/**
 * The files of `src` with a function that runs while `work` does, counted by V8. What has run before, loading among it, is
 * not counted: do the same once before, so that what is made once and kept stays out. The tests of a file count together,
 * because to begin counting V8 looks through all that the process holds.
 */
export function useFilesRun(): (work: () => Promise<unknown>) => Promise<string[]> {
  const session = new Session();
  beforeAll(async () => {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  });
  afterAll(() => session.disconnect());
  return async (work) => {
    await session.post("Profiler.takePreciseCoverage");
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const ran = result.filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => !isExport(functionName) && ranges.some(({ count }) => count > 0)),
    );
    const files = ran.map(({ url }) => (url.startsWith("file:") ? fileURLToPath(url) : url));
    const ours = files.filter((file) => file.startsWith(`${SOURCES}/`)).map((file) => relative(SOURCES, file));
    return [...new Set(ours)].sort();
  };
}
