/** Running a program to its end, without the folder that is open as a place for modules. */

import { execFile } from "node:child_process";
import { firstLine } from "./candidates";

/** The environment of every Python that is started: the folder it starts in, which may be anybody's, offers no modules. */
export function safeEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONSAFEPATH: "1" };
}

/** What the program prints; an error whose message is one line, when it fails or takes too long. */
export function output(
  [program, ...words]: readonly [string, ...string[]],
  options: { cwd: string; seconds: number; signal?: AbortSignal; log?: (line: string) => void },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      words,
      {
        cwd: options.cwd,
        env: safeEnvironment(),
        timeout: options.seconds * 1000,
        windowsHide: true,
        maxBuffer: 16 * 1024 * 1024,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
      (error, stdout, stderr) => {
        if (error === null) {
          resolve(stdout);
        } else if (error.killed === true && options.signal?.aborted !== true) {
          reject(new Error(`no answer within ${options.seconds} s`));
        } else {
          reject(new Error(firstLine(stderr) || firstLine(error.message)));
        }
      },
    );
    const { log } = options;
    if (log !== undefined) {
      const forward = (data: unknown) => String(data).split(/\r?\n/).filter((line) => line.trim() !== "").forEach(log);
      child.stdout?.on("data", forward);
      child.stderr?.on("data", forward);
    }
  });
}
