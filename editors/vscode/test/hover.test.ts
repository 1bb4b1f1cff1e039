import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutMessages } from "../src/hover";

const HOVER = "**TL301** [item](x) · runs per batch\n\n`a.item()` waits\n\nWhy it `waits`\n\n- one\n- two";

test("what VS Code shows itself is left out", () => {
  assert.equal(withoutMessages(HOVER, ["`a.item()` waits"]), "**TL301** [item](x) · runs per batch\n\nWhy it `waits`\n\n- one\n- two");
});

test("advice and doubts that it shows are left out, too", () => {
  const hover = "head\n\n`a.item()` waits\n\n**Doubtful**: rarely\n\n**Help**: read it later\n\nwhy";
  const message = "`a.item()` waits — rarely\nhelp: read it later";
  assert.equal(withoutMessages(hover, [message]), "head\n\n**Doubtful**: rarely\n\nwhy");
});

test("everything else stays", () => {
  assert.equal(withoutMessages(HOVER, ["waits", ""]), HOVER);
  assert.equal(withoutMessages(HOVER, []), HOVER);
});
