/** What a user sets, as the server and the launch of it want it. */

import * as path from "node:path";

/** Settings that the server reads; those that are not set are not in it. */
export interface ServerSettings {
  configuration?: string;
  select?: string[];
  extendSelect?: string[];
  ignore?: string[];
  preview?: boolean;
  includeTests?: boolean;
  run?: string;
  enable?: boolean;
}

/** Settings that decide which program is the server. */
export interface LaunchSettings {
  path: string[];
  interpreter: string[];
  importStrategy: "fromEnvironment" | "useBundled";
}

/** The places that variables in paths stand for. */
export interface Places {
  workspaceFolder: string | undefined;
  userHome: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** What a section of settings holds under a key. */
export type Read = (key: string) => unknown;

/** Keys whose change asks for another server, not for another answer. */
export const LAUNCH_KEYS = ["enable", "path", "interpreter", "importStrategy"] as const;

export function serverSettings(read: Read, places: Places): ServerSettings {
  const settings: ServerSettings = {};
  const configuration = read("configuration");
  if (typeof configuration === "string" && configuration.trim() !== "") {
    settings.configuration = located(configuration, places);
  }
  for (const key of ["select", "extendSelect", "ignore"] as const) {
    const rules = strings(read(key));
    if (rules.length > 0) {
      settings[key] = rules;
    }
  }
  for (const key of ["preview", "includeTests", "enable"] as const) {
    const value = read(key);
    if (typeof value === "boolean") {
      settings[key] = value;
    }
  }
  const run = read("run");
  if (typeof run === "string") {
    settings.run = run;
  }
  return settings;
}

export function launchSettings(read: Read, places: Places): LaunchSettings {
  return {
    path: strings(read("path")).map((one) => program(one, places)),
    interpreter: strings(read("interpreter")).map((one) => program(one, places)),
    importStrategy: read("importStrategy") === "useBundled" ? "useBundled" : "fromEnvironment",
  };
}

/** Whether a message of this level becomes a notification. */
export function isShown(level: "error" | "warning" | "info", showNotifications: unknown): boolean {
  switch (showNotifications) {
    case "always":
      return true;
    case "onWarning":
      return level !== "info";
    case "off":
      return false;
    default:
      return level === "error";
  }
}

/** The path with its variables replaced, from the workspace folder on. */
function located(text: string, places: Places): string {
  const known = expanded(text, places);
  return places.workspaceFolder === undefined ? known : path.resolve(places.workspaceFolder, known);
}

/** As `located`; what names no folder is a program on PATH and stays as it is. */
function program(text: string, places: Places): string {
  const known = expanded(text, places);
  return /[\\/]/.test(known) ? located(known, places) : known;
}

function expanded(text: string, places: Places): string {
  return text
    .trim()
    .replaceAll("${workspaceFolder}", () => places.workspaceFolder ?? "")
    .replaceAll("${userHome}", () => places.userHome)
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => places.env[name] ?? "")
    .replace(/^~(?=$|[\\/])/, () => places.userHome);
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string" && one.trim() !== "") : [];
}
