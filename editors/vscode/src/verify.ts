/** `Verify this fix`: a terminal in which torchlint runs the user's code, once that is agreed to. */

import * as path from "node:path";
import * as vscode from "vscode";
import type { Candidate } from "./candidates";
import { type Shell, shellKind } from "./quote";
import { asVerifyRequest, verifyLine } from "./verify_line";

const TITLE = "torchlint verify";
const PROMPT_MILLISECONDS = 5000;
const SETTLING_MILLISECONDS = 300;
const MANAGE_TRUST = "Manage Workspace Trust";
const AGREED = "torchlint.verifyAgreed";
/** Shells that can tell VS Code when they show a prompt. */
const TELLING: ReadonlySet<Shell> = new Set(["posix", "fish", "powershell"]);

interface Place {
  terminal: vscode.Terminal;
  cwd: string;
  isBusy: boolean;
}

export class Verifier implements vscode.Disposable {
  readonly #memory: vscode.Memento;
  readonly #listeners: vscode.Disposable[];
  #places: Place[] = [];

  /** `memory` is of the workspace, and holds whether its code may be run. */
  constructor(memory: vscode.Memento) {
    this.#memory = memory;
    this.#listeners = [
      vscode.window.onDidCloseTerminal((terminal) => {
        this.#places = this.#places.filter((place) => place.terminal !== terminal);
      }),
      vscode.window.onDidStartTerminalShellExecution(({ terminal }) => this.#mark(terminal, true)),
      vscode.window.onDidEndTerminalShellExecution(({ terminal }) => this.#mark(terminal, false)),
    ];
  }

  /** Verify what the argument of the command asks for. */
  async verify(argument: unknown, candidate: Candidate, projectInterpreter: string | undefined): Promise<void> {
    const request = asVerifyRequest(argument);
    if (request === undefined) {
      void vscode.window.showInformationMessage(
        "Put the cursor on a finding of torchlint and choose `Verify this fix` from the light bulb.",
      );
      return;
    }
    if (!vscode.workspace.isTrusted) {
      const message = "To verify a fix is to run your code, for which this workspace has to be trusted.";
      if ((await vscode.window.showWarningMessage(message, MANAGE_TRUST)) === MANAGE_TRUST) {
        await vscode.commands.executeCommand("workbench.trust.manage");
      }
      return;
    }
    const shell = shellKind(vscode.env.shell);
    const line = verifyLine(candidate, request, projectInterpreter, shell);
    if (!(await this.#isAgreed(line, request.cwd))) {
      return;
    }
    await save(vscode.Uri.parse(request.uri));
    const terminal = this.#terminal(request.cwd);
    terminal.show();
    if (TELLING.has(shell)) {
      await prompt(terminal);
    }
    terminal.sendText(line);
  }

  dispose(): void {
    this.#listeners.forEach((listener) => listener.dispose());
  }

  async #isAgreed(line: string, cwd: string): Promise<boolean> {
    if (this.#memory.get(AGREED) === true) {
      return true;
    }
    const answer = await vscode.window.showInformationMessage(
      "Run your code to verify this fix?",
      {
        modal: true,
        detail:
          `torchlint runs the program with and without the fix, several times, and compares results and times. ` +
          `Your files are not changed.\n\nIn ${path.basename(cwd)}:\n${line}\n\nYou are asked once per workspace.`,
      },
      "Run",
    );
    if (answer !== "Run") {
      return false;
    }
    await this.#memory.update(AGREED, true);
    return true;
  }

  /** A terminal in that folder which is not known to be running something. */
  #terminal(cwd: string): vscode.Terminal {
    const free = this.#places.find(
      ({ terminal, cwd: folder, isBusy }) => folder === cwd && !isBusy && terminal.exitStatus === undefined,
    );
    if (free !== undefined) {
      return free.terminal;
    }
    const terminal = vscode.window.createTerminal({ name: TITLE, cwd, iconPath: new vscode.ThemeIcon("beaker") });
    this.#places.push({ terminal, cwd, isBusy: false });
    return terminal;
  }

  #mark(terminal: vscode.Terminal, isBusy: boolean): void {
    const place = this.#places.find((one) => one.terminal === terminal);
    if (place !== undefined) {
      place.isBusy = isBusy;
    }
  }
}

/** Waits for the prompt of a new terminal, but not for long: how a shell is set up may keep it from telling. */
async function prompt(terminal: vscode.Terminal): Promise<void> {
  if (terminal.shellIntegration !== undefined) {
    return;
  }
  let listener: vscode.Disposable | undefined;
  const told = new Promise<void>((resolve) => {
    listener = vscode.window.onDidChangeTerminalShellIntegration((change) => {
      if (change.terminal === terminal) {
        resolve();
      }
    });
  });
  await Promise.race([told, pause(PROMPT_MILLISECONDS)]);
  listener?.dispose();
  await pause(SETTLING_MILLISECONDS); // it tells a moment before, and what is typed then is shown twice
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** What is measured is the file, so it has to hold what the editor shows. */
async function save(uri: vscode.Uri): Promise<void> {
  const shown = uri.toString();
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === shown);
  if (document?.isDirty === true && !document.isUntitled) {
    await document.save();
  }
}
