import { type ChildProcess, spawn } from "node:child_process";

export interface Program {
  child: ChildProcess;
  output(): string;
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | string>;
  /** Waits until the output matches. */
  says(pattern: RegExp): Promise<RegExpMatchArray>;
}

/** Starts a built program (`dist/...`) with exactly this environment beside PATH; a developer's own `.env` is not read. */
export function startProgram(
  file: string,
  environment: Record<string, string> = {},
  args: string[] = [],
  cwd = process.cwd(),
): Program {
  const env = { PATH: process.env.PATH ?? "", NODE_ENV: "test", ...environment };
  const child = spawn(process.execPath, [`${process.cwd()}/dist/${file}`, ...args], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  const waiting = new Set<() => void>();
  const hear = (chunk: string) => {
    text += chunk;
    for (const look of waiting) look();
  };
  child.stdout?.setEncoding("utf8").on("data", hear);
  child.stderr?.setEncoding("utf8").on("data", hear);
  const ended = new Promise<number | string>((resolve) => {
    child.on("close", (code, signal) => resolve(code ?? signal ?? "gone"));
  });
  const says = (pattern: RegExp) =>
    new Promise<RegExpMatchArray>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(text);
        if (!match) return;
        waiting.delete(look);
        resolve(match);
      };
      waiting.add(look);
      look();
      ended.then((code) => reject(new Error(`${file} ended (${code}) without saying ${pattern}:\n${text}`)));
    });
  return { child, output: () => text, ended, says };
}
