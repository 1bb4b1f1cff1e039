// Puts a wheel of torchlint, as committed here, into `bundled/`, from where the extension installs its own copy.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = fileURLToPath(new URL("../bundled", import.meta.url));
const checkout = fileURLToPath(new URL("../../..", import.meta.url));
const python = process.env.PYTHON ?? (process.platform === "win32" ? "python" : "python3");
const scratch = mkdtempSync(path.join(tmpdir(), "torchlint-bundle-"));

function run(program, ...words) {
  execFileSync(program, words, { stdio: "inherit" });
}

try {
  run("git", "clone", "--quiet", "--depth", "1", pathToFileURL(checkout).href, scratch);
  rmSync(folder, { recursive: true, force: true });
  run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, scratch);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`bundled/${readdirSync(folder).join(", ")}`);
