/** What VS Code calls: commands, and what has to happen when settings, the interpreter or trust change. */

import * as vscode from "vscode";
import { DOCUMENTS } from "./client";
import { watchInterpreter } from "./python";
import { projectInterpreter, Session } from "./session";
import { LAUNCH_KEYS } from "./settings";
import { Status } from "./status";
import { Verifier } from "./verify";

const VERIFY = "torchlint.verifyFix";

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("torchlint", { log: true });
  const status = new Status(DOCUMENTS);
  const verifier = new Verifier(context.workspaceState);
  const current = new Session(context, log, status, [VERIFY]);
  session = current;

  const commands: Record<string, (...words: unknown[]) => unknown> = {
    "torchlint.restart": () => current.restart(),
    "torchlint.showLogs": () => log.show(),
    "torchlint.installServer": () => current.install(),
    "torchlint.debugInformation": async () => showText(await current.debugInformation()),
    "torchlint.executeAutofix": () => {
      const uri = vscode.window.activeTextEditor?.document.uri;
      return uri === undefined ? undefined : current.execute("torchlint.applyAutofix", uri.toString());
    },
    "torchlint.explain": (code) => current.execute("torchlint.explain", code),
    [VERIFY]: async (request) => {
      if (current.candidate !== undefined) {
        await verifier.verify(request, current.candidate, await projectInterpreter());
      }
    },
  };
  context.subscriptions.push(
    log,
    status,
    verifier,
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (LAUNCH_KEYS.some((key) => change.affectsConfiguration(`torchlint.${key}`))) {
        void current.restart();
      } else if (change.affectsConfiguration("torchlint")) {
        void current.settingsChanged();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => current.restart()),
  );
  context.subscriptions.push(await watchInterpreter(() => void current.restart()));
  await current.restart();
}

export function deactivate(): Promise<void> | undefined {
  return session?.stop();
}

async function showText(content: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument({ content, language: "plaintext" });
  await vscode.window.showTextDocument(document);
}
