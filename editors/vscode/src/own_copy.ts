/** The extension's own torchlint: a virtual environment of its own, made on request. */

import { existsSync, readdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import { findOnPath } from "./candidates";
import { output } from "./processes";
import { interpreterIn } from "./python";

const SOURCE = "torchlint[lsp] @ git+https://github.com/torchlint/torchlint";
const OLDEST_PYTHON = [3, 10] as const;

/** The interpreter of the copy, if it is installed. */
export function ownInterpreter(context: vscode.ExtensionContext): string | undefined {
  const python = interpreterIn(environment(context));
  return existsSync(python) ? python : undefined;
}

/** Make the copy anew with the first of the interpreters that is new enough; throws when that fails or is cancelled. */
export async function installOwnCopy(
  context: vscode.ExtensionContext,
  interpreters: readonly string[],
  log: (line: string) => void,
): Promise<void> {
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Installing torchlint", cancellable: true },
    async (progress, token) => {
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      const cwd = context.globalStorageUri.fsPath;
      await mkdir(cwd, { recursive: true });
      const run = (...words: [string, ...string[]]) => {
        log(`$ ${words.join(" ")}`);
        return output(words, { cwd, seconds: 600, signal: stop.signal, log });
      };
      const base = await newEnoughPython(interpreters, run);
      const target = environment(context);
      await rm(target, { recursive: true, force: true });
      try {
        progress.report({ message: `with ${base}` });
        await run(base, "-m", "venv", target);
        await run(interpreterIn(target), "-m", "pip", "install", "--disable-pip-version-check", requirement(context));
      } catch (error) {
        await rm(target, { recursive: true, force: true }); // half a copy would be taken for one
        throw stop.signal.aborted ? new vscode.CancellationError() : error;
      }
    },
  );
}

/** Whether a torchlint came with the extension. */
export function hasWheel(context: vscode.ExtensionContext): boolean {
  return wheel(context) !== undefined;
}

/** The wheel that came with the extension, else what the project publishes. */
function requirement(context: vscode.ExtensionContext): string {
  const file = wheel(context);
  return file === undefined ? SOURCE : `${file}[lsp]`;
}

function wheel(context: vscode.ExtensionContext): string | undefined {
  const folder = context.asAbsolutePath("bundled");
  const name = existsSync(folder) ? readdirSync(folder).find((one) => one.endsWith(".whl")) : undefined;
  return name === undefined ? undefined : path.join(folder, name);
}

async function newEnoughPython(
  interpreters: readonly string[],
  run: (...words: [string, ...string[]]) => Promise<string>,
): Promise<string> {
  const onPath = ["python3", "python", "py"].map((name) => findOnPath(name, process.env, existsSync));
  for (const python of [...interpreters, ...onPath]) {
    if (python !== undefined) {
      const version = await run(python, "-c", "import sys; print(*sys.version_info[:2])").catch(() => "0 0");
      const [major = 0, minor = 0] = version.trim().split(" ").map(Number);
      if (major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1]) {
        return python;
      }
    }
  }
  throw new Error(`no Python ${OLDEST_PYTHON.join(".")} or newer found; choose one in torchlint.interpreter`);
}

function environment(context: vscode.ExtensionContext): string {
  return path.join(context.globalStorageUri.fsPath, "environment");
}
