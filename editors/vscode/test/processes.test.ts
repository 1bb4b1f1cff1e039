import assert from "node:assert/strict";
import { test } from "node:test";
import { output, safeEnvironment } from "../src/processes";

const HERE = { cwd: process.cwd(), seconds: 30 };

test("what a program prints is its output", async () => {
  assert.equal(await output([process.execPath, "-p", "6 * 7"], HERE), "42\n");
});

test("a program that fails is an error in one line", async () => {
  const failing = "process.stderr.write('first\\nsecond\\n'); process.exit(2)";
  await assert.rejects(output([process.execPath, "-e", failing], HERE), { message: "first" });
  await assert.rejects(output(["/nowhere/torchlint"], HERE), /ENOENT/);
});

test("a program that does not answer is ended", async () => {
  const endless = [process.execPath, "-e", "setInterval(() => 0, 1000)"] as const;
  await assert.rejects(output(endless, { ...HERE, seconds: 0.5 }), { message: "no answer within 0.5 s" });
});

test("lines are passed on while they come", async () => {
  const lines: string[] = [];
  const printing = "console.log('one\\n\\ntwo'); console.error('three')";
  await output([process.execPath, "-e", printing], { ...HERE, log: (line) => lines.push(line) });
  assert.deepEqual(lines.sort(), ["one", "three", "two"]);
});

test("Python takes no modules from the folder that it starts in", () => {
  assert.equal(safeEnvironment()["PYTHONSAFEPATH"], "1");
});
