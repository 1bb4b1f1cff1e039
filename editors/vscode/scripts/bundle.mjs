// Puts a wheel of this checkout's torchlint into `bundled/`, from where the extension installs its own copy.
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../bundled", import.meta.url));
const checkout = fileURLToPath(new URL("../../..", import.meta.url));
const python = process.env.PYTHON ?? (process.platform === "win32" ? "python" : "python3");

rmSync(folder, { recursive: true, force: true });
execFileSync(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, checkout], {
  stdio: "inherit",
});
console.log(`bundled/${readdirSync(folder).join(", ")}`);
