// Drives the packaged extension in a real VS Code (code-server) with a real browser, and takes a picture of each step.
//
//   CODE_SERVER      out/node/entry.js of an installed code-server
//   CHROMIUM         a Chromium; /usr/bin/chromium by default
//   PLAYWRIGHT_CORE  the folder of the package playwright-core
//   VSIX             the packaged extension; the newest *.vsix here by default
//   ENVIRONMENT      a virtual environment with torchlint[lsp] and torch, which becomes the project's
//   BARE_PYTHON      an interpreter without torchlint; if given, torchlint is installed by the extension, from a package index
//   IMAGES           where those of README.md go; if not given, nowhere
//   PICTURES         where the pictures go; a folder under the system's temporary one by default
import assert from "node:assert/strict";
import { spawn, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { DIGITS, NOTEBOOK, PYPROJECT, SCORE, TRAIN } from "./workspace.mjs";

const EXTENSION = fileURLToPath(new URL("..", import.meta.url));
const BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const SETTINGS = {
  "workbench.colorTheme": "Default Light Modern",
  "workbench.startupEditor": "none",
  "workbench.layoutControl.enabled": false,
  "workbench.tips.enabled": false,
  "window.commandCenter": false,
  "chat.commandCenter.enabled": false,
  "editor.minimap.enabled": false,
  "editor.fontFamily": "DejaVu Sans Mono",
  "editor.fontSize": 13,
  "editor.occurrencesHighlight": "off",
  "editor.hover.delay": 200,
  "editor.stickyScroll.enabled": false,
  "terminal.integrated.fontFamily": "DejaVu Sans Mono",
  "terminal.integrated.gpuAcceleration": "off",
  "terminal.integrated.stickyScroll.enabled": false,
  "remote.autoForwardPorts": false,
  "terminal.integrated.commandsToSkipShell": ["workbench.action.showCommands"],
  "telemetry.telemetryLevel": "off",
  "files.defaultLanguage": "python",
  "files.autoSave": "off", // as in VS Code on a desktop
  "files.exclude": { "**/.torchlint_cache": true, "**/.vscode": true, "**/.venv": true },
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "security.workspace.trust.enabled": false,
};
// Where the findings of train.py are.
const LINES = { TL101: "loader = DataLoader(", TL201: "weight = torch.ones(10", TL301: "total += loss." };

const started = Date.now();
const given = inputs();
const folder = mkdtempSync(path.join(tmpdir(), "torchlint-e2e-"));
const pictures = process.env.PICTURES ?? path.join(tmpdir(), "torchlint-e2e-pictures");
let server;
let browser;
let page;
let shots = 0;
try {
  const { chromium } = await import(pathToFileURL(path.join(given.playwright, "index.mjs")).href);
  await serve();
  browser = await chromium.launch({ executablePath: given.chromium, args: BROWSER_OPTIONS });
  page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await drive();
  say(`all passed; pictures in ${pictures}`);
} catch (error) {
  await page?.screenshot({ path: path.join(pictures, "failed.png") }).catch(() => undefined);
  console.error(logOfExtension().split("\n").slice(-30).join("\n"));
  throw error;
} finally {
  await browser?.close();
  await ended(server);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 }); // what it started ends after it
}

async function drive() {
  await page.goto(`http://127.0.0.1:${server.port}/?folder=${path.join(folder, "project")}`, { waitUntil: "domcontentloaded" });
  await page.waitForSelector(".monaco-workbench", { timeout: 60_000 });

  await step("a training script is open and its findings are underlined", async () => {
    await open("train.py");
    await page.waitForSelector(".monaco-editor .squiggly-warning", { timeout: 60_000 });
    await command("Problems: Focus on Problems View");
    await problems((rows) => rows.some((row) => row.includes("TL301")) && rows.some((row) => row.includes("TL201")));
    await picture("problems");
  });

  await step("the hover says what the line costs", async () => {
    await command("View: Hide Panel");
    const text = await hover("total += loss.item()", "item");
    assert.match(text, /TL301/);
    assert.match(text, /item-in-train-loop/);
    assert.match(text, /per batch/);
    say(text.replaceAll("\n", "\n    "));
    await picture("hover");
    await page.keyboard.press("Escape");
  });

  await step("the light bulb offers the fix, and applies it", async () => {
    await actions("weight = torch.ones(10)");
    await picture("quick-fixes", "quick-fix.png", { x: 348, y: 182, width: 920, height: 354 });
    await choose(/TL201\): (?!ignore|explain|verify)/);
    await shows('device=');
    await gone("TL201");
    await save();
    await picture("fixed");
    assert.match(file("train.py"), /torch\.ones\(10, device="cuda"\)/);
  });

  await step("a finding is ignored on its line", async () => {
    await actions("loader = DataLoader(");
    await choose(/ignore on this line/);
    await shows("# torchlint: ignore[");
    await gone("TL101");
    await save();
    await picture("ignored");
  });

  await step("the fix of the training loop", async () => {
    await actions("total += loss.item()");
    await choose(/TL301, unsafe\)/);
    await shows("loss.detach()");
    await gone("TL301");
    await picture("unsafe-fix");
    await undo("loss.item()");
  });

  await step("`verify this fix` asks, and runs the line in a terminal", async () => {
    await actions("total += loss.item()");
    await choose(/verify this fix/);
    await page.waitForSelector(".monaco-dialog-box");
    await picture("verify-asks");
    await page.click('.monaco-dialog-box .monaco-button:has-text("Run")');
    await page.waitForSelector(".xterm-rows", { timeout: 30_000 });
    await printed(/torchlint verify .*train\.py/, 30);
    await command("View: Toggle Maximized Panel");
    await printed(/fewer synchronizations[\s\S]*\$ ?$/, 300);
    await picture("verify", "verify.png", { x: 348, y: 0, width: 920, height: 310 });
    await command("Terminal: Kill the Active Terminal Instance");
  });

  await step("the hover says what was verified", async () => {
    assert.match(await hover("total += loss.item()", "item"), /This line: /);
    await picture("hover-verified", "hover.png", { x: 348, y: 36, width: 920, height: 500 });
    await page.keyboard.press("Escape");
  });

  await step("fixed on save", async () => {
    configure({ "[python]": { "editor.codeActionsOnSave": { "source.fixAll.torchlint": "explicit" } } });
    await open("score.py");
    await page.waitForSelector(".monaco-editor .squiggly-warning");
    await picture("before-save");
    await page.waitForTimeout(1500); // VS Code reads its settings when it sees that they have changed
    await page.keyboard.press("Control+End");
    await page.keyboard.type("# saved\n");
    await save();
    await shows('device="cuda"');
    await page.waitForFunction(() => document.querySelector(".tab.active.dirty") === null);
    assert.match(file("score.py"), /device="cuda"\)\n.*# saved/s);
    await picture("after-save");
    configure({});
  });

  await step("`Fix All Safe Findings`", async () => {
    await open("again.py");
    await page.waitForSelector(".monaco-editor .squiggly-warning");
    await command("torchlint: Fix All Safe Findings");
    await shows('device="cuda"');
    await save();
  });

  await step("a changed setting counts at once", async () => {
    await open("train.py");
    await underlined("total += loss.item()");
    configure({ "torchlint.ignore": ["TL301"] });
    await gone("TL301");
    await picture("setting");
    configure({});
    await underlined("total += loss.item()");
  });

  await step("a configuration file counts at once", async () => {
    writeFileSync(path.join(folder, "project", "torchlint.toml"), 'ignore = ["TL301"]\n');
    await gone("TL301");
    rmSync(path.join(folder, "project", "torchlint.toml"));
    await underlined("total += loss.item()");
  });

  await step("a buffer that is no file", async () => {
    await command("File: New Untitled Text File");
    await page.waitForSelector('.tab.active[aria-label^="Untitled"]');
    await page.keyboard.insertText("import torch\n\nscale = [torch.zeros(10).cuda() for _ in range(100_000)]\n");
    await underlined("scale = ");
    await command("View: Close Editor");
    await page.click('.monaco-dialog-box .monaco-button:has-text("Don\'t Save")');
  });

  await step("the server is started again", async () => {
    await open("train.py");
    const before = starts();
    await command("torchlint: Restart Server");
    await until(() => starts() > before, "no second start in the log");
    await underlined("total += loss.item()");
  });

  await step("the server comes back when it ends by itself", async () => {
    const pid = serverPid();
    process.kill(pid, "SIGKILL");
    await until(() => ![undefined, pid].includes(serverPid()), "no new server");
    await type("total += loss.item()", "  # back");
    await underlined("total += loss.item()");
    await command("File: Revert File");
    await underlined("total += loss.item()");
  });

  await step("the language status", async () => {
    await page.click('.statusbar-item[id="status.languageStatus"]');
    await page.waitForSelector(".hover-language-status");
    const text = await page.$eval(".hover-language-status", (one) => one.innerText);
    assert.match(text, /torchlint \d+\.\d+/);
    await picture("status");
    await page.keyboard.press("Escape");
    await page.mouse.move(640, 400);
  });

  await step("debug information", async () => {
    await command("torchlint: Show Debug Information");
    await shows("launch settings:");
    await picture("debug-information");
  });

  await step("the log", async () => {
    await command("torchlint: Show Logs");
    await page.waitForSelector('.output-view-container, [id="workbench.panel.output"]');
    await page.waitForTimeout(500);
    await picture("log");
  });

  if (given.barePython !== undefined) {
    await step("without torchlint, the extension offers to install its own, and uses that", async () => {
      await open("train.py");
      configure({ "torchlint.interpreter": [given.barePython] });
      const notice = page.locator(".notification-list-item", { hasText: "No torchlint found" });
      await notice.waitFor();
      await picture("not-installed");
      await notice.locator(".monaco-button", { hasText: "Install" }).click();
      await until(() => /runs: .*the extension's own copy/.test(logOfExtension()), "its own copy does not run", 300);
      await underlined("total += loss.item()");
      await picture("installed");
      configure({});
      await underlined("total += loss.item()");
    });
  }

  await step("cells of a notebook", async () => {
    await command("View: Hide Panel");
    await open("explore.ipynb", ".notebookOverlay");
    await page.waitForSelector(".notebookOverlay .squiggly-warning", { timeout: 30_000 });
    await actions("weight = torch.ones(10).cuda()");
    await picture("notebook", "notebook.png", { x: 348, y: 82, width: 920, height: 458 });
    await choose(/TL201\): (?!ignore|explain|verify)/);
    await shows('weight = torch.ones(10, device="cuda")');
    await until(async () => !(await isUnderlined("weight = torch.ones(10")), "the cell is fixed, and still underlined");
  });

  await step("cells are fixed on save", async () => {
    configure({ "notebook.codeActionsOnSave": { "source.fixAll.torchlint": "explicit" } });
    await page.waitForTimeout(1500);
    await page.keyboard.press("Control+Z");
    await shows("weight = torch.ones(10).cuda()");
    await underlined("weight = torch.ones(10)");
    await save();
    await shows('weight = torch.ones(10, device="cuda")');
    await until(() => file("explore.ipynb").includes('torch.ones(10, device=\\"cuda\\")'), "the saved notebook is not fixed");
    configure({});
  });
}

// Steps and pictures.

async function step(name, run) {
  if (process.env.ONLY !== undefined && !new RegExp(process.env.ONLY).test(name)) {
    return;
  }
  const from = Date.now();
  await run();
  say(`${name} (${((Date.now() - from) / 1000).toFixed(1)} s)`);
}

/** A picture of the window, and one of what is to be seen in README.md. */
async function picture(name, image, clip) {
  await page.waitForTimeout(400);
  shots += 1;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${String(shots).padStart(2, "0")}-${name}.png`) });
  if (image !== undefined && process.env.IMAGES !== undefined) {
    await page.screenshot({ path: path.join(process.env.IMAGES, image), clip });
  }
}

function say(text) {
  console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);
}

// What a user does.

async function command(title) {
  await page.keyboard.press("F1");
  await page.waitForSelector(".quick-input-widget input");
  await page.fill(".quick-input-widget input", `>${title}`);
  const row = (label) => `.quick-input-list .monaco-list-row[aria-label${label}"]`;
  await page.click(`${row(`="${title}`)}, ${row(`^="${title},`)}`, { timeout: 5_000 });
  await page.waitForSelector(".quick-input-widget", { state: "hidden" });
}

async function open(name, shown = ".monaco-editor .view-lines") {
  await page.keyboard.press("Control+P");
  await page.waitForSelector(".quick-input-widget input");
  await page.fill(".quick-input-widget input", name);
  await page.click(`.quick-input-list .monaco-list-row[aria-label^="${name}"]`);
  await page.waitForSelector(`.tab.active[aria-label^="${name}"]`);
  await page.waitForSelector(shown);
  await page.waitForTimeout(300);
}

function line(text) {
  return page.locator(".monaco-editor .view-line", { hasText: text }).first();
}

async function toLine(text) {
  await line(text).click({ position: { x: 60, y: 8 } });
  await page.keyboard.press("End");
}

async function hover(text, word) {
  await line(text).locator("span > span", { hasText: word }).last().hover();
  await page.waitForSelector(".monaco-resizable-hover .monaco-hover-content, .monaco-hover:not(.hidden) .hover-contents");
  await page.waitForTimeout(600);
  return page.$$eval(".monaco-hover:not(.hidden) .hover-row", (rows) => rows.map((row) => row.innerText).join("\n"));
}

async function actions(text) {
  await underlined(text);
  await toLine(text);
  await page.waitForTimeout(500); // VS Code asks for what the bulb shows, and drops what is asked meanwhile
  await page.keyboard.press("Control+.");
  await page.waitForSelector(".action-widget .monaco-list-row", { timeout: 20_000 });
  const rows = await page.$$eval(".action-widget .monaco-list-row", (all) => all.map((row) => row.innerText.trim()));
  say(`    ${rows.join("\n            ")}`);
}

async function choose(title) {
  for (let row = 0; row < 20; row++) {
    const focused = await page.$eval(".action-widget .monaco-list-row.focused", (one) => one.innerText.trim()).catch(() => "");
    if (title.test(focused)) {
      await page.keyboard.press("Enter");
      return;
    }
    await page.keyboard.press("ArrowDown");
  }
  throw new Error(`no action ${title}`);
}

async function type(text, added) {
  await toLine(text);
  await page.keyboard.type(added);
}

async function save() {
  await page.keyboard.press("Control+S");
  await page.waitForFunction(() => document.querySelector(".tab.active.dirty") === null);
}

async function undo(text) {
  await page.locator(".monaco-editor .view-lines").first().click({ position: { x: 300, y: 8 } });
  await page.keyboard.press("Control+Z");
  await shows(text);
}

// What a user sees.

async function shows(text) {
  await page.waitForFunction(
    (wanted) => [...document.querySelectorAll(".monaco-editor .view-lines")].some((one) => one.innerText.replace(/\u00a0/g, " ").includes(wanted)),
    text,
    { timeout: 20_000 },
  );
}

async function printed(pattern, seconds) {
  const text = () => page.$eval(".xterm-rows", (rows) => rows.innerText.replaceAll("\u00a0", " ").trimEnd());
  await until(async () => pattern.test(await text()), `the terminal does not show ${pattern}`, seconds);
}

/** Waits until a squiggle stands on the line, by its place on the screen. */
async function underlined(text) {
  await until(() => isUnderlined(text), `no squiggle: ${text}`);
}

async function isUnderlined(text) {
  const box = await line(text).boundingBox();
  const squiggles = await page.$$eval(".monaco-editor .squiggly-warning", (all) => all.map((one) => one.getBoundingClientRect().top));
  return box !== null && squiggles.some((top) => Math.abs(top - box.y) < box.height / 2);
}

async function gone(code) {
  await until(async () => !(await isUnderlined(LINES[code])), `${code} is still there`);
}

async function problems(are) {
  const seen = () => page.$$eval(".markers-panel .monaco-list-row", (rows) => rows.map((row) => row.innerText.replace(/\s+/g, " ").trim()));
  await until(async () => are(await seen()), "other problems than expected");
  say(`    ${(await seen()).join("\n            ")}`);
}

async function until(holds, message, seconds = 20) {
  for (let left = seconds * 10; left > 0; left--) {
    if (await holds()) {
      return;
    }
    await page.waitForTimeout(100);
  }
  throw new Error(message);
}

// The project, VS Code and its server.

async function serve() {
  for (const [name, content] of Object.entries({ "train.py": TRAIN, "digits.py": DIGITS, "score.py": SCORE, "again.py": SCORE, "explore.ipynb": NOTEBOOK, "pyproject.toml": PYPROJECT })) {
    mkdirSync(path.join(folder, "project"), { recursive: true });
    writeFileSync(path.join(folder, "project", name), content);
  }
  mkdirSync(path.join(folder, "home"));
  writeFileSync(path.join(folder, "home", ".bashrc"), "PS1='$ '\n");
  symlinkSync(given.environment, path.join(folder, "project", ".venv"));
  writeJson(path.join(folder, "data", "User", "settings.json"), SETTINGS);
  configure({});
  const env = { ...process.env, HOME: path.join(folder, "home"), SHELL: "/bin/bash", XDG_CONFIG_HOME: "", XDG_DATA_HOME: "" };
  const places = ["--user-data-dir", path.join(folder, "data"), "--extensions-dir", path.join(folder, "extensions")];
  execFileSync(process.execPath, [given.codeServer, ...places, "--install-extension", given.vsix], { env, stdio: "pipe" });
  const port = await freePort();
  const words = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"];
  server = spawn(process.execPath, [given.codeServer, ...places, ...words], { env, stdio: "pipe" });
  server.port = port;
  await new Promise((resolve, reject) => {
    server.stdout.on("data", (data) => String(data).includes("listening on") && resolve());
    server.once("exit", (status) => reject(new Error(`code-server ended with ${status}`)));
  });
}

function ended(process) {
  return new Promise((resolve) => {
    if (process === undefined || process.exitCode !== null) {
      resolve();
    } else {
      process.once("exit", resolve);
      process.kill();
    }
  });
}

/** Write the settings of the workspace, which VS Code watches. */
function configure(settings) {
  writeJson(path.join(folder, "project", ".vscode", "settings.json"), settings);
}

function writeJson(target, content) {
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, JSON.stringify(content, undefined, 2));
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function file(name) {
  return readFileSync(path.join(folder, "project", name), "utf8");
}

function logOfExtension() {
  const logs = path.join(folder, "data", "logs");
  const files = existsSync(logs) ? readdirSync(logs, { recursive: true }).map(String) : [];
  return files.filter((name) => /torchlint.*\.log$/.test(name)).map((name) => readFileSync(path.join(logs, name), "utf8")).join("\n");
}

function starts() {
  return logOfExtension().split(" runs: ").length - 1;
}

/** The process of the server: the one whose folder is the extension's storage of this run. */
function serverPid() {
  const ours = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).find((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      return words.includes("server") && words[0] !== process.execPath && environment.includes(`HOME=${folder}`);
    } catch {
      return false; // it ended, or is none of ours
    }
  });
  return ours === undefined ? undefined : Number(ours);
}

function inputs() {
  const newest = readdirSync(EXTENSION).filter((name) => name.endsWith(".vsix")).map((name) => path.join(EXTENSION, name))
    .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
  const { CODE_SERVER, CHROMIUM = "/usr/bin/chromium", PLAYWRIGHT_CORE, VSIX = newest, ENVIRONMENT, BARE_PYTHON } = process.env;
  const needed = { CODE_SERVER, CHROMIUM, PLAYWRIGHT_CORE, VSIX, ENVIRONMENT };
  const missing = Object.entries(needed).filter(([, file]) => file === undefined || !existsSync(file)).map(([name]) => name);
  if (missing.length > 0) {
    console.error(`missing: ${missing.join(", ")} (the top of e2e/drive.mjs says what they are)`);
    process.exit(2);
  }
  return { codeServer: CODE_SERVER, chromium: CHROMIUM, playwright: PLAYWRIGHT_CORE, vsix: VSIX, environment: ENVIRONMENT, barePython: BARE_PYTHON };
}
