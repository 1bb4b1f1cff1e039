/** Which torchlint is used: the first of several that answers. */

import * as path from "node:path";
import type { LaunchSettings } from "./settings";

/** The origin of the copy that the extension installs. */
export const OWN = "the extension's own copy";

/** A way to run torchlint. */
export interface Candidate {
  /** The program and its first arguments; `server` or `verify` comes behind them. */
  command: readonly [string, ...string[]];
  /** Where it comes from, in words. */
  origin: string;
  /** The interpreter that runs it, where that is the project's own. */
  interpreter?: string;
}

/** What is there besides settings. */
export interface Surroundings {
  /** The interpreters of the project, the best first; none while the workspace is not trusted. */
  interpreters: readonly string[];
  /** `torchlint` on PATH. */
  onPath: string | undefined;
  /** The interpreter of the extension's own copy, if that is installed. */
  own: string | undefined;
}

/** A candidate that answered, with its version. */
export interface Found {
  candidate: Candidate;
  version: string;
}

/** A candidate that did not answer, and why. */
export interface Refusal {
  candidate: Candidate;
  reason: string;
}

/** The output of a program, or an error whose message says why there is none. */
export type Ask = (command: readonly [string, ...string[]]) => Promise<string>;

export function candidates(settings: LaunchSettings, around: Surroundings): Candidate[] {
  const fromSettings = settings.path.map((program): Candidate => ({ command: [program], origin: "torchlint.path" }));
  const fromInterpreters =
    settings.interpreter.length > 0
      ? settings.interpreter.map((python) => ofInterpreter(python, "torchlint.interpreter"))
      : around.interpreters.map((python) => ofInterpreter(python, "the Python environment"));
  const onPath: Candidate[] = around.onPath === undefined ? [] : [{ command: [around.onPath], origin: "PATH" }];
  const own: Candidate[] = around.own === undefined ? [] : [{ command: [around.own, "-m", "torchlint"], origin: OWN }];
  switch (settings.importStrategy) {
    case "useBundled":
      return [...fromSettings, ...own, ...fromInterpreters, ...onPath];
    case "fromEnvironment":
      return [...fromSettings, ...fromInterpreters, ...onPath, ...own];
  }
}

/** The version, by which a candidate shows that it is torchlint; throws what is wrong with it. */
export async function versionOf(candidate: Candidate, ask: Ask): Promise<string> {
  const output = (await ask([...candidate.command, "--version"])).trim();
  const version = /^torchlint (\S+)$/.exec(output)?.[1];
  if (version === undefined) {
    throw new Error(output === "" ? "it does not answer to --version" : `--version says \`${firstLine(output)}\``);
  }
  return version;
}

export function describe(candidate: Candidate): string {
  return `${candidate.command.join(" ")} (${candidate.origin})`;
}

/** The first line of a text, or the last one of a traceback, which says what happened. */
export function firstLine(text: string): string {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return (lines[0]?.startsWith("Traceback") ? lines.at(-1) : lines[0])?.trim() ?? "";
}

/** The program of this name in the folders of PATH that are given whole: another one may be anybody's. */
export function findOnPath(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
  isProgram: (file: string) => boolean,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  const { delimiter, isAbsolute, join } = platform === "win32" ? path.win32 : path.posix;
  const file = platform === "win32" ? `${name}.exe` : name;
  return (env["PATH"] ?? env["Path"] ?? "")
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, file))
    .find(isProgram);
}

function ofInterpreter(python: string, origin: string): Candidate {
  return { command: [python, "-m", "torchlint"], origin, interpreter: python };
}
