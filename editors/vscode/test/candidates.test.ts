import assert from "node:assert/strict";
import { test } from "node:test";
import { candidates, findOnPath, firstLine, versionOf } from "../src/candidates";
import type { LaunchSettings } from "../src/settings";

const NOTHING_SET: LaunchSettings = { path: [], interpreter: [], importStrategy: "fromEnvironment" };
const ALL = { interpreters: ["/env/python", "/project/.venv/bin/python"], onPath: "/usr/bin/torchlint", own: "/own/python" };

function commands(settings: Partial<LaunchSettings>, around = ALL): string[] {
  return candidates({ ...NOTHING_SET, ...settings }, around).map(({ command }) => command.join(" "));
}

test("the environment comes first, then PATH, then the extension's own", () => {
  assert.deepEqual(commands({}), [
    "/env/python -m torchlint",
    "/project/.venv/bin/python -m torchlint",
    "/usr/bin/torchlint",
    "/own/python -m torchlint",
  ]);
});

test("useBundled prefers the extension's own", () => {
  assert.equal(commands({ importStrategy: "useBundled" })[0], "/own/python -m torchlint");
  assert.equal(commands({ importStrategy: "useBundled" }).length, 4);
});

test("path wins over everything, interpreter over the environment", () => {
  const settings = { path: ["/a", "/b"], interpreter: ["/c"] };
  const wanted = ["/a", "/b", "/c -m torchlint", "/usr/bin/torchlint", "/own/python -m torchlint"];
  assert.deepEqual(commands(settings), wanted);
  assert.deepEqual(commands({ ...settings, importStrategy: "useBundled" }).slice(0, 3), ["/a", "/b", "/own/python -m torchlint"]);
});

test("what is not there is no candidate", () => {
  assert.deepEqual(candidates(NOTHING_SET, { interpreters: [], onPath: undefined, own: undefined }), []);
});

test("only an interpreter of the project is the project's", () => {
  const interpreters = candidates({ ...NOTHING_SET, path: ["/a"] }, ALL).map(({ interpreter }) => interpreter);
  assert.deepEqual(interpreters, [undefined, "/env/python", "/project/.venv/bin/python", undefined, undefined]);
});

test("a candidate shows by its version that it is torchlint", async () => {
  const candidate = { command: ["/a", "-m", "torchlint"], origin: "here" } as const;
  const asked: string[][] = [];
  const version = await versionOf(candidate, async (command) => {
    asked.push([...command]);
    return "torchlint 1.2.3\n";
  });
  assert.equal(version, "1.2.3");
  assert.deepEqual(asked, [["/a", "-m", "torchlint", "--version"]]);
  await assert.rejects(versionOf(candidate, async () => "Python 3.12\n"), { message: "--version says `Python 3.12`" });
  await assert.rejects(versionOf(candidate, async () => ""), { message: "it does not answer to --version" });
});

test("of a traceback the last line says what happened", () => {
  assert.equal(firstLine("Traceback (most recent call last):\n  File x\nImportError: no\n"), "ImportError: no");
  assert.equal(firstLine("\n/x/python: No module named torchlint\r\n"), "/x/python: No module named torchlint");
  assert.equal(firstLine(""), "");
});

test("PATH is searched in order, and only in folders that are given whole", () => {
  const env = { PATH: ".:bin::/a:/b" };
  const asked: string[] = [];
  const isProgram = (file: string) => asked.push(file) > 0 && file === "/b/torchlint";
  assert.equal(findOnPath("torchlint", env, isProgram, "linux"), "/b/torchlint");
  assert.deepEqual(asked, ["/a/torchlint", "/b/torchlint"]);
  assert.equal(findOnPath("torchlint", { Path: "C:\\a;D:\\b" }, (file) => file === "D:\\b\\torchlint.exe", "win32"), "D:\\b\\torchlint.exe");
  assert.equal(findOnPath("torchlint", {}, () => true, "linux"), undefined);
});
