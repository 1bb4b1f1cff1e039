import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { test } from "node:test";
import { commandLine, shellKind } from "../src/quote";

const AWKWARD = ["plain.py", "two words", "it's", 'a "quote"', "$HOME", "`id`", "a;b", "*", "\\", "~", "a&&b", "é", "", "#x"];

test("a POSIX shell gives the words back", () => {
  const line = commandLine([process.execPath, "-p", "JSON.stringify(process.argv.slice(1))", "--", ...AWKWARD], "posix");
  assert.deepEqual(JSON.parse(execFileSync("/bin/sh", ["-c", line], { encoding: "utf8" })), AWKWARD);
});

for (const [shell, program] of [["fish", "fish"], ["nu", "nu"], ["powershell", "pwsh"]] as const) {
  const isThere = spawnSync(program, ["--version"]).status === 0;
  test(`${program} gives the words back`, { skip: isThere ? false : `no ${program} here` }, () => {
    const line = commandLine([process.execPath, "-p", "JSON.stringify(process.argv.slice(1))", "--", ...AWKWARD], shell);
    assert.deepEqual(JSON.parse(execFileSync(program, ["-c", line], { encoding: "utf8" })), AWKWARD);
  });
}

test("words that mean nothing to a shell stay as they are", () => {
  const words = ["/opt/venv/bin/python", "-m", "torchlint", "verify", "train.py", "--select", "TL301"] as const;
  for (const shell of ["posix", "fish", "powershell", "cmd", "nu"] as const) {
    assert.equal(commandLine(words, shell), words.join(" "));
  }
});

test("fish escapes backslashes and quotes in single quotes", () => {
  assert.equal(commandLine(["x", "a\\b's"], "fish"), "x 'a\\\\b\\'s'");
});

test("PowerShell doubles quotes, typographic ones too, and calls a quoted program", () => {
  assert.equal(commandLine(["C:\\Program Files\\python.exe", "it's"], "powershell"), "& 'C:\\Program Files\\python.exe' 'it''s'");
  assert.equal(commandLine(["x", "it’s"], "powershell"), "x 'it’’s'");
  assert.equal(commandLine(["x", "@a", "$b", "a,b", "-a.b"], "powershell"), "x '@a' '$b' 'a,b' '-a.b'");
});

test("Nushell gets a raw string where a word holds a quote", () => {
  assert.equal(commandLine(["/a b/x", "it's", "a'#b", "$x"], "nu"), "^'/a b/x' r#'it's'# r##'a'#b'## '$x'");
});

test("cmd gets double quotes, and carets where quotes do not protect", () => {
  assert.equal(commandLine(["C:\\a b\\x.exe", "a&b", "dir\\ x\\"], "cmd"), '"C:\\a b\\x.exe" "a&b" "dir\\ x\\\\"');
  assert.equal(commandLine(["x", "%PATH%"], "cmd"), 'x ^"^%PATH^%^"');
  assert.equal(commandLine(["x", 'a"&b'], "cmd"), 'x ^"a\\^"^&b^"');
});

test("a shell is known by the name of its program", () => {
  assert.equal(shellKind("/usr/bin/zsh"), "posix");
  assert.equal(shellKind("/opt/homebrew/bin/fish"), "fish");
  assert.equal(shellKind("C:\\WINDOWS\\System32\\WindowsPowerShell\\v1.0\\powershell.exe"), "powershell");
  assert.equal(shellKind("C:\\Program Files\\PowerShell\\7\\pwsh.EXE"), "powershell");
  assert.equal(shellKind("C:\\Windows\\system32\\cmd.exe"), "cmd");
  assert.equal(shellKind("C:\\Program Files\\Git\\bin\\bash.exe"), "posix");
  assert.equal(shellKind(""), "posix");
});
