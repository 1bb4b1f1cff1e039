// Drives JupyterLab with jupyterlab-lsp as a person does: opens a notebook, sees findings, reads about one, mends it, saves.
//
//   npm install --no-save playwright-core
//   JUPYTER=venv/bin/jupyter CHROMIUM=/usr/bin/chromium SHOTS=/tmp node editors/jupyterlab/drive.mjs
//
// JUPYTER is of an environment with jupyterlab, jupyterlab-lsp, ipykernel and torchlint[lsp]; nothing else tells JupyterLab
// of torchlint. NODE_PATH may name the folder that holds playwright-core. Prints one line for each step, leaves a picture of
// each in SHOTS, and exits with 0 if all of them hold.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const { JUPYTER = "jupyter", CHROMIUM = "/usr/bin/chromium", SHOTS, TRACE } = process.env;
const NAME = "train.ipynb";
const CELLS = [
  "%matplotlib inline\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader",
  "!nvidia-smi",
  `def train(model: nn.Module, data, optimizer):
    loader = DataLoader(data, batch_size=64, num_workers=4, persistent_workers=True, pin_memory=True)
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            mood = "😀"; x = x.to("cuda")
            y = y.to("cuda")
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(mood, epoch, total / len(loader))`,
];
const FLAGGED = ['x.to("cuda")', 'y.to("cuda")', "loss.item()"];

const started = Date.now();
const say = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(1)} s  ${text}`);

function notebook() {
  const cells = CELLS.map((text, number) => ({
    cell_type: "code",
    execution_count: null,
    id: `cell-${number}`,
    metadata: {},
    outputs: [],
    source: text.split(/(?<=\n)/),
  }));
  const kernelspec = { display_name: "Python 3", language: "python", name: "python3" };
  return JSON.stringify({ cells, metadata: { kernelspec }, nbformat: 4, nbformat_minor: 5 }, null, 1) + "\n";
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function until(step, read, holds) {
  let seen;
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    seen = await read();
    if (holds(seen)) {
      say(step);
      return seen;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${step}: ${JSON.stringify(seen)}`);
}

const home = mkdtempSync(join(tmpdir(), "torchlint-"));
const folder = join(home, "work");
const quiet = join(home, "lab", "@jupyterlab", "apputils-extension");
mkdirSync(folder);
mkdirSync(quiet, { recursive: true });
writeFileSync(join(folder, NAME), notebook());
writeFileSync(join(quiet, "notification.jupyterlab-settings"), '{ "fetchNews": "false", "checkForUpdates": false }');
const homes = {
  JUPYTER_CONFIG_DIR: join(home, "config"),
  JUPYTER_DATA_DIR: join(home, "data"),
  JUPYTER_RUNTIME_DIR: join(home, "runtime"),
  JUPYTERLAB_SETTINGS_DIR: join(home, "lab"),
  JUPYTERLAB_WORKSPACES_DIR: join(home, "workspaces"),
};
const port = await freePort();
const settings = { ip: "127.0.0.1", port, open_browser: false, allow_root: true, root_dir: folder };
const lab = spawn(
  JUPYTER,
  ["lab", "--IdentityProvider.token=", ...Object.entries(settings).map(([key, value]) => `--ServerApp.${key}=${value}`)],
  { cwd: folder, env: { ...process.env, ...homes }, stdio: ["ignore", "ignore", "pipe"] },
);
let log = "";
lab.stderr.on("data", (data) => (log += data));
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
});
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
let pictures = 0;
const picture = (name) =>
  SHOTS && page.screenshot({ path: join(SHOTS, `jupyterlab-${++pictures}-${name}.png`) });
if (TRACE) {
  page.on("websocket", (socket) => {
    const note = (arrow) => ({ payload }) => String(payload).includes("jsonrpc") && console.log(arrow, String(payload));
    if (socket.url().includes("/lsp/")) socket.on("framesent", note("-->")).on("framereceived", note("<--"));
  });
}

let status = 1;
try {
  const address = `http://127.0.0.1:${port}/lab`;
  await until("the server runs", () => fetch(address).then((answer) => answer.ok, () => false), Boolean);
  await page.goto(`${address}/tree/${NAME}?reset`);
  await page.waitForSelector(".jp-Notebook .cm-content", { timeout: 60_000 });

  const marks = () => page.$$eval(".jp-Notebook .cm-lintRange", (all) => all.map((each) => each.textContent));
  const same = (wanted) => (seen) => JSON.stringify(seen) === JSON.stringify(wanted);
  await until("three findings are underlined", marks, same(FLAGGED));
  await picture("findings");

  await page.locator(".cm-lintRange", { hasText: "loss.item()" }).hover();
  await until("the finding's message is shown", () => page.locator(".cm-tooltip-lint").allInnerTexts(), (texts) =>
    texts.join().includes("every batch"),
  );
  await picture("message");
  await page.keyboard.down("Control");
  await page.mouse.move(0, 0);
  await page.locator(".cm-lintRange", { hasText: "loss.item()" }).hover({ position: { x: 60, y: 8 } });
  await until("hover tells why", () => page.locator(".lsp-hover, .lsp-tooltip, .jp-Tooltip").allInnerTexts(), (texts) =>
    texts.join().includes("TL301"),
  );
  await picture("hover");
  await page.keyboard.up("Control");
  await page.mouse.move(0, 0);

  const line = page.locator(".cm-line", { hasText: 'y = y.to("cuda")' });
  await line.click();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.type(", non_blocking=True");
  await until("what is mended is gone", marks, same([FLAGGED[0], FLAGGED[2]]));
  await page.keyboard.press("End");
  await page.keyboard.type(" +");
  await page.waitForTimeout(2000);
  await until("findings stay where the code is broken", marks, same([FLAGGED[0], FLAGGED[2]]));
  await picture("broken");
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Control+S");
  await until(
    "it is saved",
    () => JSON.parse(readFileSync(join(folder, NAME), "utf8")).cells[2].source.join(""),
    (text) => text.includes('y = y.to("cuda", non_blocking=True)\n'),
  );
  await until("saving changes nothing", marks, same([FLAGGED[0], FLAGGED[2]]));
  await picture("saved");
  say("all hold");
  status = 0;
} catch (error) {
  await picture("failed");
  console.log(`FAILED ${error.message}\n${log.split("\n").slice(-20).join("\n")}`);
} finally {
  await browser.close();
  lab.kill("SIGINT");
  lab.kill("SIGTERM");
  rmSync(home, { recursive: true, force: true });
}
process.exit(status);
