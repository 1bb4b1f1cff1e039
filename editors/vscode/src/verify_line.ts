/** The line that verifies a fix in a terminal. */

import * as path from "node:path";
import type { Candidate } from "./candidates";
import { commandLine, type Shell } from "./quote";

/** What the server passes to the command `torchlint.verifyFix`. */
export interface VerifyRequest {
  uri: string;
  cwd: string;
  arguments: string[];
}

/** The request that an argument of a command is, if it is one. */
export function asVerifyRequest(argument: unknown): VerifyRequest | undefined {
  if (typeof argument !== "object" || argument === null) {
    return undefined;
  }
  const { uri, cwd, arguments: words } = argument as Record<string, unknown>;
  const isWhole =
    typeof uri === "string" &&
    typeof cwd === "string" &&
    Array.isArray(words) &&
    words[0] === "verify" &&
    words.every((word) => typeof word === "string" && !/[\0-\x1f]/.test(word)); // a line break would end the line
  return isWhole ? { uri, cwd, arguments: words as string[] } : undefined;
}

/**
 * The line for this shell. A torchlint that is not the project's own measures with the project's interpreter, since its
 * own has no torch.
 */
export function verifyLine(
  candidate: Candidate,
  request: VerifyRequest,
  projectInterpreter: string | undefined,
  shell: Shell,
): string {
  const [verify = "verify", ...words] = request.arguments;
  const [program, ...first] = candidate.command;
  const python =
    candidate.interpreter !== undefined || projectInterpreter === undefined ? [] : ["--python", projectInterpreter];
  return commandLine([short(program, request.cwd), ...first, verify, ...python, ...words], shell);
}

/** The program as one would type it in that folder. */
function short(program: string, folder: string): string {
  const inside = path.relative(folder, program);
  const isInside = path.isAbsolute(program) && !path.isAbsolute(inside) && !inside.startsWith("..");
  return isInside && inside.includes(path.sep) ? inside : program; // a bare name would be looked for on PATH
}
