import assert from "node:assert/strict";
import { test } from "node:test";
import { isShown, launchSettings, type Read, serverSettings } from "../src/settings";

const PLACES = { workspaceFolder: "/project", userHome: "/home/me", env: { VENV: "/venvs/one" } };

function reading(values: Record<string, unknown>): Read {
  return (key) => values[key];
}

test("what is not set is not sent", () => {
  const defaults = { configuration: null, select: [], extendSelect: [], ignore: [], preview: null, includeTests: null };
  assert.deepEqual(serverSettings(reading(defaults), PLACES), {});
});

test("what is set is sent as it is", () => {
  const values = {
    select: ["TL3"],
    extendSelect: ["sync"],
    ignore: ["TL301"],
    preview: false,
    includeTests: true,
    run: "onSave",
    enable: true,
  };
  assert.deepEqual(serverSettings(reading(values), PLACES), values);
});

test("settings of the client are none of the server's", () => {
  assert.deepEqual(serverSettings(reading({ path: ["x"], interpreter: ["y"], showNotifications: "off" }), PLACES), {});
});

test("values of a wrong type are dropped", () => {
  const values = { configuration: 1, select: "TL301", ignore: ["TL301", 3, " "], preview: "yes", run: 0 };
  assert.deepEqual(serverSettings(reading(values), PLACES), { ignore: ["TL301"] });
});

test("the configuration file is found from the workspace folder", () => {
  const found = (configuration: string, places: typeof PLACES | { workspaceFolder: undefined } = PLACES) =>
    serverSettings(reading({ configuration }), { ...PLACES, ...places }).configuration;
  assert.equal(found("torchlint.toml"), "/project/torchlint.toml");
  assert.equal(found("../shared/torchlint.toml"), "/shared/torchlint.toml");
  assert.equal(found("~/torchlint.toml"), "/home/me/torchlint.toml");
  assert.equal(found("${userHome}/a~b.toml"), "/home/me/a~b.toml");
  assert.equal(found("${workspaceFolder}/ci/torchlint.toml"), "/project/ci/torchlint.toml");
  assert.equal(found("${env:VENV}/t.toml"), "/venvs/one/t.toml");
  assert.equal(found("/etc/torchlint.toml"), "/etc/torchlint.toml");
  assert.equal(found("torchlint.toml", { workspaceFolder: undefined }), "torchlint.toml");
  assert.equal(found("  "), undefined);
});

test("a program without a folder is one on PATH", () => {
  const settings = launchSettings(reading({ path: ["torchlint", ".venv/bin/torchlint"], interpreter: ["${env:VENV}/bin/python"] }), PLACES);
  assert.deepEqual(settings.path, ["torchlint", "/project/.venv/bin/torchlint"]);
  assert.deepEqual(settings.interpreter, ["/venvs/one/bin/python"]);
  assert.equal(settings.importStrategy, "fromEnvironment");
});

test("notifications are as frequent as wanted", () => {
  const shown = (setting: unknown) => (["error", "warning", "info"] as const).filter((level) => isShown(level, setting));
  assert.deepEqual(shown("off"), []);
  assert.deepEqual(shown("onError"), ["error"]);
  assert.deepEqual(shown(undefined), ["error"]);
  assert.deepEqual(shown("onWarning"), ["error", "warning"]);
  assert.deepEqual(shown("always"), ["error", "warning", "info"]);
});
