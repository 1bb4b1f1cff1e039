/** The language client: what VS Code and the server say to each other. */

import { createInterface } from "node:readline";
import * as vscode from "vscode";
import {
  CloseAction,
  ExecuteCommandRequest,
  LanguageClient,
  type LanguageClientOptions,
  MessageType,
  RevealOutputChannelOn,
  type ServerOptions,
  ShowMessageNotification,
} from "vscode-languageclient/node";
import type { Candidate } from "./candidates";
import { withoutMessages } from "./hover";
import { safeEnvironment } from "./processes";
import { isShown, type ServerSettings } from "./settings";

/** Python wherever the server takes it from: files, unsaved buffers and the cells of notebooks. */
export const DOCUMENTS: { scheme: string; language: string }[] = ["file", "untitled", "vscode-notebook-cell"].map(
  (scheme) => ({ scheme, language: "python" }),
);

const RESTARTS = 4;

/** What the client asks of the rest of the extension. */
export interface Host {
  log: vscode.LogOutputChannel;
  /** Where the server starts: not in the workspace, whose modules it would take for its own. */
  cwd: string;
  /** What the server is told of settings, for a folder, a file or everything else. */
  settings(scope: vscode.Uri | undefined): ServerSettings;
  /** Commands of ours that the server may offer. */
  commands: readonly string[];
  showNotifications(): unknown;
}

/** A running server. */
export interface Connection {
  client: LanguageClient;
  version: string | undefined;
  execute(command: string, words: unknown[]): Promise<unknown>;
  stop(): Promise<void>;
}

/** Start the server; throws what it said last when it does not get as far as to answer. */
export async function connect(candidate: Candidate, host: Host): Promise<Connection> {
  const [program, ...words] = candidate.command;
  const server: ServerOptions = {
    command: program,
    args: [...words, "server"],
    options: { cwd: host.cwd, env: safeEnvironment() },
  };
  let lastLine = "";
  const client: Client = new Client(host, server, {
    ...options(host),
    stdioOptions: {
      stdout: () => undefined,
      stderr: (stream) => {
        createInterface({ input: stream }).on("line", (line) => {
          lastLine = line.trim() === "" ? lastLine : line;
          host.log.appendLine(line);
        });
      },
    },
    initializationFailedHandler: () => false,
    errorHandler: {
      error: (error, message, count) => restarting.error(error, message, count),
      closed: () =>
        client.hasRun ? restarting.closed() : { action: CloseAction.DoNotRestart, handled: true },
    },
  });
  const restarting = client.createDefaultErrorHandler(RESTARTS);
  client.onNotification(ShowMessageNotification.type, ({ type, message }) => showMessage(type, message, host));
  try {
    await client.start();
  } catch (error) {
    await client.dispose().catch(() => undefined);
    const said = lastLine.replace(/^error: /, "");
    throw new Error(said || (error instanceof Error ? error.message : String(error)), { cause: error });
  }
  client.hasRun = true;
  return {
    client,
    version: client.initializeResult?.serverInfo?.version,
    execute: (command, args) => client.sendRequest(ExecuteCommandRequest.type, { command, arguments: args }),
    stop: () => client.dispose(),
  };
}

/** Tell the server that settings have changed. */
export function settingsChanged(connection: Connection, host: Host): Promise<void> {
  return connection.client.sendNotification("workspace/didChangeConfiguration", {
    settings: { torchlint: host.settings(undefined) },
  });
}

/**
 * A client that registers no commands of the server with VS Code, and whose errors are shown where that is wanted. Ours
 * are there whether the server runs or not, and pass on to it what it is to do.
 */
class Client extends LanguageClient {
  /** Whether the server has ever answered; until then whoever starts it speaks of its errors. */
  hasRun = false;
  readonly #host: Host;

  constructor(host: Host, server: ServerOptions, clientOptions: LanguageClientOptions) {
    super("torchlint", "torchlint", server, clientOptions);
    this.#host = host;
  }

  override registerFeature(feature: Parameters<LanguageClient["registerFeature"]>[0]): void {
    const method = "registrationType" in feature ? feature.registrationType.method : undefined;
    if (method !== ExecuteCommandRequest.method) {
      super.registerFeature(feature);
    }
  }

  override error(message: string, data?: unknown, showNotification?: boolean | "force"): void {
    if (this.hasRun) {
      super.error(message, data, isShown("error", this.#host.showNotifications()) && showNotification);
    } else {
      this.debug(message, data, false);
    }
  }
}

function options(host: Host): LanguageClientOptions {
  return {
    documentSelector: DOCUMENTS,
    outputChannel: host.log,
    traceOutputChannel: host.log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: { settings: host.settings(undefined), commands: host.commands },
    middleware: {
      provideHover: async (document, position, token, next) => {
        const hover = await next(document, position, token);
        const messages = vscode.languages
          .getDiagnostics(document.uri)
          .filter(({ source, range }) => source === "torchlint" && range.contains(position))
          .map(({ message }) => message);
        for (const content of hover?.contents ?? []) {
          if (content instanceof vscode.MarkdownString) {
            content.value = withoutMessages(content.value, messages);
          }
        }
        return hover;
      },
      workspace: {
        didChangeConfiguration: () => Promise.resolve(), // `settingsChanged` tells, with paths that are whole
        configuration: async (params, token, next) => {
          const answers = await next(params, token);
          return Array.isArray(answers)
            ? params.items.map(({ section, scopeUri }, index): unknown =>
                section === "torchlint"
                  ? host.settings(scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri))
                  : answers[index],
              )
            : answers;
        },
      },
    },
  };
}

function showMessage(type: MessageType, message: string, host: Host): void {
  const shown = host.showNotifications();
  switch (type) {
    case MessageType.Error:
      host.log.error(message);
      if (isShown("error", shown)) {
        void vscode.window.showErrorMessage(message);
      }
      break;
    case MessageType.Warning:
      host.log.warn(message);
      if (isShown("warning", shown)) {
        void vscode.window.showWarningMessage(message);
      }
      break;
    default:
      host.log.info(message);
      if (isShown("info", shown)) {
        void vscode.window.showInformationMessage(message);
      }
  }
}
