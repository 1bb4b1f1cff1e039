/** A command as a line that a shell takes apart into the same words. */

import * as path from "node:path";

export type Shell = "posix" | "fish" | "powershell" | "cmd" | "nu";

/** The kind of a shell, by the name of its program; one that is not known is taken for a POSIX shell. */
export function shellKind(program: string): Shell {
  const name = path.win32.basename(program).toLowerCase().replace(/\.exe$/, "");
  switch (name) {
    case "cmd":
      return "cmd";
    case "powershell":
    case "pwsh":
    case "pwsh-preview":
      return "powershell";
    case "fish":
    case "nu":
      return name;
    default:
      return "posix";
  }
}

export function commandLine(words: readonly [string, ...string[]], shell: Shell): string {
  const quoted = words.map((word) => quote(word, shell));
  // PowerShell prints a string, and Nushell takes it for data, unless told to call it.
  const isQuoted = quoted[0] !== words[0];
  const call = !isQuoted ? "" : shell === "powershell" ? "& " : shell === "nu" ? "^" : "";
  return call + quoted.join(" ");
}

function quote(word: string, shell: Shell): string {
  switch (shell) {
    case "posix":
      return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
    case "fish":
      return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
    case "powershell":
      return /^(?!-)[\w+=:./\\-]+$|^--?[\w-]+$/.test(word) ? word : `'${word.replace(/['‘’‚‛]/g, "$&$&")}'`;
    case "nu":
      return /^[\w./-]+$/.test(word) ? word : nuString(word);
    case "cmd":
      return /^[\w+:./\\-]+$/.test(word) ? word : cmdString(word);
  }
}

/** A raw string with more marks around it than it holds, since Nushell has no escape in single quotes. */
function nuString(word: string): string {
  if (!word.includes("'")) {
    return `'${word}'`;
  }
  const marks = "#".repeat(1 + Math.max(0, ...[...word.matchAll(/'(#*)/g)].map((match) => match[1]?.length ?? 0)));
  return `r${marks}'${word}'${marks}`;
}

/**
 * In double quotes, as the C runtime undoes them. Where the word holds a quote, cmd would take what follows for unquoted,
 * and it replaces `%NAME%` even between quotes: then each character that means something to it gets a caret.
 */
function cmdString(word: string): string {
  const quoted = `"${word.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"`;
  return /["%]/.test(word) ? quoted.replace(/[()%!^"<>&|]/g, "^$&") : quoted;
}
