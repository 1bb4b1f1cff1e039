/** The interpreters of the project, from the Python extension where there is one. */

import { existsSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

/** As much of the API of `ms-python.python` as is used here. */
interface PythonExtension {
  readonly environments: {
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
    getActiveEnvironmentPath(resource?: vscode.Uri): unknown;
    resolveEnvironment(environment: unknown): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
  };
}

/**
 * The interpreter that is active for the folder, then that of a `.venv` in it; none while the workspace is not trusted,
 * since it may have brought them along.
 */
export async function projectInterpreters(folder: vscode.WorkspaceFolder | undefined): Promise<string[]> {
  if (!vscode.workspace.isTrusted) {
    return [];
  }
  const active = await activeInterpreter(folder?.uri);
  const inFolder = folder === undefined ? [] : virtualEnvironments(folder.uri.fsPath);
  return [...new Set([...(active === undefined ? [] : [active]), ...inFolder])];
}

/** Calls `changed` whenever another interpreter is chosen. */
export async function watchInterpreter(changed: () => void): Promise<vscode.Disposable> {
  const extension = await pythonExtension();
  return extension?.environments.onDidChangeActiveEnvironmentPath(changed) ?? new vscode.Disposable(() => undefined);
}

/** The interpreter of a virtual environment. */
export function interpreterIn(environment: string): string {
  return process.platform === "win32"
    ? path.join(environment, "Scripts", "python.exe")
    : path.join(environment, "bin", "python");
}

async function activeInterpreter(resource: vscode.Uri | undefined): Promise<string | undefined> {
  const extension = await pythonExtension();
  if (extension === undefined) {
    return undefined;
  }
  const { environments } = extension;
  const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
  return environment?.executable.uri?.fsPath;
}

async function pythonExtension(): Promise<PythonExtension | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    return await extension.activate();
  } catch {
    return undefined; // as if it were not there; it reports its own failure
  }
}

function virtualEnvironments(folder: string): string[] {
  return [".venv", "venv"].map((name) => interpreterIn(path.join(folder, name))).filter((python) => existsSync(python));
}
