/** What the language status of a Python file says of torchlint. */

import * as vscode from "vscode";

export type State =
  | { kind: "starting" }
  | { kind: "running"; version: string; detail: string }
  | { kind: "failed"; reason: string }
  | { kind: "off" };

export class Status implements vscode.Disposable {
  readonly #item: vscode.LanguageStatusItem;

  constructor(selector: vscode.DocumentSelector) {
    this.#item = vscode.languages.createLanguageStatusItem("torchlint.status", selector);
    this.#item.name = "torchlint";
    this.#item.command = { command: "torchlint.showLogs", title: "Show Logs" };
    this.show({ kind: "off" });
  }

  show(state: State): void {
    const item = this.#item;
    item.busy = state.kind === "starting";
    item.severity =
      state.kind === "failed" ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
    switch (state.kind) {
      case "starting":
        item.text = "torchlint";
        item.detail = "starting";
        break;
      case "running":
        item.text = `torchlint ${state.version}`;
        item.detail = state.detail;
        break;
      case "failed":
        item.text = "torchlint is not running";
        item.detail = state.reason;
        break;
      case "off":
        item.text = "torchlint";
        item.detail = "switched off";
        break;
    }
  }

  dispose(): void {
    this.#item.dispose();
  }
}
