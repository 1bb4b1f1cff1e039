/** One server at a time: found, started, stopped, and started again when what it hangs on changes. */

import { accessSync, constants, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";
import { type Candidate, candidates, describe, findOnPath, OWN, type Refusal, versionOf } from "./candidates";
import { connect, type Connection, type Host, settingsChanged } from "./client";
import { hasWheel, installOwnCopy, ownInterpreter } from "./own_copy";
import { output } from "./processes";
import { projectInterpreters } from "./python";
import { isShown, launchSettings, type LaunchSettings, type Places, type ServerSettings, serverSettings } from "./settings";
import type { Status } from "./status";

const SECONDS_TO_ANSWER = 20;
const INSTALL = "Install";
const SHOW_LOGS = "Show Logs";
/** For which version of the extension an update of its own copy was offered. */
const OFFERED = "torchlint.updateOffered";

interface Running {
  connection: Connection;
  candidate: Candidate;
  version: string;
}

export class Session {
  readonly #context: vscode.ExtensionContext;
  readonly #log: vscode.LogOutputChannel;
  readonly #status: Status;
  readonly #host: Host;
  #running: Running | undefined;
  #refusals: Refusal[] = [];
  #turn: Promise<void> = Promise.resolve();
  #waiting = false;

  constructor(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, status: Status, commands: string[]) {
    this.#context = context;
    this.#log = log;
    this.#status = status;
    this.#host = {
      log,
      cwd: context.globalStorageUri.fsPath,
      settings: serverSettingsOf,
      commands,
      showNotifications: () => section().get("showNotifications"),
    };
  }

  /** What runs torchlint now, if it runs. */
  get candidate(): Candidate | undefined {
    return this.#running?.candidate;
  }

  /** Stop what runs and start it again; calls while that goes on become one more turn. */
  restart(): Promise<void> {
    if (!this.#waiting) {
      this.#waiting = true;
      this.#turn = this.#turn.then(async () => {
        this.#waiting = false;
        await this.#stop();
        await this.#start();
      });
    }
    return this.#turn;
  }

  async settingsChanged(): Promise<void> {
    await this.#turn;
    if (this.#running !== undefined) {
      await settingsChanged(this.#running.connection, this.#host);
    }
  }

  /** What the server answers to a command of its own. */
  async execute(command: string, ...words: unknown[]): Promise<unknown> {
    await this.#turn;
    if (this.#running === undefined) {
      this.#offer("torchlint is not running.", SHOW_LOGS);
      return undefined;
    }
    return this.#running.connection.execute(command, words);
  }

  /** Install the extension's own copy and use it where it is wanted. */
  async install(): Promise<void> {
    await this.#turn;
    await this.#stop(); // a running program cannot be replaced everywhere
    try {
      const settings = launchSettingsOf();
      const interpreters = [...settings.interpreter, ...(await projectInterpreters(firstFolder()))];
      await installOwnCopy(this.#context, interpreters, (line) => this.#log.info(line));
    } catch (error) {
      this.#log.error(`torchlint could not be installed: ${messageOf(error)}`);
      if (!(error instanceof vscode.CancellationError)) {
        this.#offer(`torchlint could not be installed: ${messageOf(error)}`, SHOW_LOGS);
      }
    }
    await this.restart();
  }

  /** All that is worth telling with a report of a bug. */
  async debugInformation(): Promise<string> {
    await this.#turn;
    const running = this.#running;
    const client = [
      `extension: ${String(this.#context.extension.packageJSON.version)}`,
      `VS Code: ${vscode.version}, ${vscode.env.appName}, ${process.platform} ${process.arch}`,
      `workspace: ${vscode.workspace.isTrusted ? "trusted" : "not trusted"}, folders: ${vscode.workspace.workspaceFolders?.length ?? 0}`,
      `server: ${running === undefined ? "not running" : `${running.version}, ${describe(running.candidate)}`}`,
      ...this.#refusals.map(({ candidate, reason }) => `not used: ${describe(candidate)}: ${reason}`),
      `launch settings: ${JSON.stringify(launchSettingsOf())}`,
      `server settings: ${JSON.stringify(serverSettingsOf(firstFolder()?.uri))}`,
    ];
    const server = await running?.connection
      .execute("torchlint.debugInformation", [])
      .catch((error: unknown) => `the server did not answer: ${messageOf(error)}`);
    return [...client, ...(typeof server === "string" ? ["", server.trimEnd()] : []), ""].join("\n");
  }

  async stop(): Promise<void> {
    await this.#turn;
    await this.#stop();
  }

  async #start(): Promise<void> {
    this.#refusals = [];
    if (!isEnabledAnywhere()) {
      this.#status.show({ kind: "off" });
      return;
    }
    this.#status.show({ kind: "starting" });
    await mkdir(this.#host.cwd, { recursive: true });
    for (const candidate of await this.#candidates()) {
      try {
        this.#running = await this.#tried(candidate);
        this.#show(this.#running);
        void this.#offerUpdate(this.#running);
        return;
      } catch (error) {
        this.#refusals.push({ candidate, reason: messageOf(error) });
        this.#log.warn(`not used: ${describe(candidate)}: ${messageOf(error)}`);
      }
    }
    this.#giveUp();
  }

  async #tried(candidate: Candidate): Promise<Running> {
    const ask = (command: readonly [string, ...string[]]) =>
      output(command, { cwd: this.#host.cwd, seconds: SECONDS_TO_ANSWER });
    const version = await versionOf(candidate, ask);
    const connection = await connect(candidate, this.#host);
    this.#log.info(`torchlint ${version} runs: ${describe(candidate)}`);
    return { connection, candidate, version };
  }

  #show(running: Running): void {
    const { candidate, connection, version } = running;
    const state = { kind: "running", version, detail: `from ${candidate.origin}` } as const;
    this.#status.show(state);
    connection.client.onDidChangeState(({ newState }) => {
      if (this.#running !== running) {
        return; // it was stopped, and another one may run
      }
      switch (newState) {
        case State.Running:
          this.#status.show(state);
          break;
        case State.Starting:
          this.#status.show({ kind: "starting" });
          break;
        default:
          this.#status.show({ kind: "failed", reason: "the server has ended" });
      }
    });
  }

  /** Offer the wheel that came with the extension where its own copy is of another version; once for each. */
  async #offerUpdate({ candidate, version }: Running): Promise<void> {
    const wanted = String(this.#context.extension.packageJSON.version);
    const memory = this.#context.globalState;
    if (candidate.origin !== OWN || version === wanted || !hasWheel(this.#context) || memory.get(OFFERED) === wanted) {
      return;
    }
    await memory.update(OFFERED, wanted);
    this.#offer(`The extension came with torchlint ${wanted}; ${version} is installed.`, INSTALL);
  }

  #giveUp(): void {
    const refusal = this.#refusals.find(({ reason }) => !reason.includes("No module named torchlint"));
    const where = vscode.workspace.isTrusted ? "in this Python environment" : "outside this workspace, which is not trusted";
    const reason =
      refusal === undefined
        ? `No torchlint found ${where}.`
        : `torchlint does not start: ${refusal.reason} (${refusal.candidate.command.join(" ")}).`;
    this.#log.error(reason);
    this.#status.show({ kind: "failed", reason });
    this.#offer(`${reason} Install a copy for the editor?`, INSTALL, SHOW_LOGS);
  }

  #offer(message: string, ...buttons: string[]): void {
    if (isShown("error", section().get("showNotifications"))) {
      void vscode.window.showErrorMessage(message, ...buttons).then((choice) => {
        switch (choice) {
          case INSTALL:
            return this.install();
          case SHOW_LOGS:
            return this.#log.show();
          default:
            return undefined;
        }
      });
    }
  }

  async #stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.connection.stop().catch((error: unknown) => {
      this.#log.warn(`the server did not stop in order: ${messageOf(error)}`);
    });
  }

  async #candidates(): Promise<Candidate[]> {
    return candidates(launchSettingsOf(), {
      interpreters: await projectInterpreters(firstFolder()),
      onPath: findOnPath("torchlint", process.env, isProgram),
      own: ownInterpreter(this.#context),
    });
  }
}

/** The interpreter whose packages the project's code is run with. */
export async function projectInterpreter(): Promise<string | undefined> {
  return launchSettingsOf().interpreter[0] ?? (await projectInterpreters(firstFolder()))[0];
}

/** Whether any folder wants to be checked; the server knows which. */
function isEnabledAnywhere(): boolean {
  const scopes = vscode.workspace.workspaceFolders?.map(({ uri }) => uri) ?? [];
  return [undefined, ...scopes].slice(scopes.length > 0 ? 1 : 0).some((scope) => section(scope).get("enable") !== false);
}

function launchSettingsOf(): LaunchSettings {
  const scope = firstFolder();
  const settings = section(scope?.uri);
  return launchSettings((key) => settings.get(key), places(scope));
}

function serverSettingsOf(scope: vscode.Uri | undefined): ServerSettings {
  const settings = section(scope ?? firstFolder()?.uri);
  const folder = scope === undefined ? undefined : vscode.workspace.getWorkspaceFolder(scope);
  return serverSettings((key) => settings.get(key), places(folder ?? firstFolder()));
}

function section(scope?: vscode.Uri): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration("torchlint", scope);
}

function places(folder: vscode.WorkspaceFolder | undefined): Places {
  return { workspaceFolder: folder?.uri.fsPath, userHome: homedir(), env: process.env };
}

function firstFolder(): vscode.WorkspaceFolder | undefined {
  return vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file");
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
