import assert from "node:assert/strict";
import { test } from "node:test";
import { asVerifyRequest, verifyLine } from "../src/verify_line";

const REQUEST = { uri: "file:///w/my%20train.py", cwd: "/w", arguments: ["verify", "my train.py", "--select", "TL301"] };

test("the environment's own torchlint is run as it is", () => {
  const candidate = { command: ["/env/python", "-m", "torchlint"], origin: "", interpreter: "/env/python" } as const;
  const line = "/env/python -m torchlint verify 'my train.py' --select TL301";
  assert.equal(verifyLine(candidate, REQUEST, "/env/python", "posix"), line);
});

test("a program of the folder is typed as one would there", () => {
  const line = (program: string) => verifyLine({ command: [program], origin: "" }, REQUEST, undefined, "posix").split(" ")[0];
  assert.equal(line("/w/.venv/bin/python"), ".venv/bin/python");
  assert.equal(line("/w/torchlint"), "/w/torchlint");
  assert.equal(line("/wide/bin/python"), "/wide/bin/python");
  assert.equal(line("torchlint"), "torchlint");
});

test("another torchlint measures with the project's interpreter", () => {
  const candidate = { command: ["torchlint"], origin: "PATH" } as const;
  const line = "torchlint verify --python '/my env/python' 'my train.py' --select TL301";
  assert.equal(verifyLine(candidate, REQUEST, "/my env/python", "posix"), line);
  assert.equal(verifyLine(candidate, REQUEST, undefined, "posix"), "torchlint verify 'my train.py' --select TL301");
});

test("only what the server would send is a request", () => {
  assert.deepEqual(asVerifyRequest({ ...REQUEST, line: 12 }), REQUEST);
  for (const argument of [
    undefined,
    null,
    "verify",
    {},
    { ...REQUEST, cwd: 1 },
    { ...REQUEST, arguments: "verify" },
    { ...REQUEST, arguments: ["verify", 1] },
    { ...REQUEST, arguments: ["clean"] },
    { ...REQUEST, arguments: ["verify", "a\nrm -r b"] },
  ]) {
    assert.equal(asVerifyRequest(argument), undefined);
  }
});
