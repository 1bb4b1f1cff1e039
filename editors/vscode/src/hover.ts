/** Hovers as VS Code needs them: it shows the message of a finding above, and once is enough. */

export function withoutMessages(markdown: string, messages: readonly string[]): string {
  const said = messages.flatMap((message) => message.split("\n")).flatMap((line) => [line, line.split(" — ")[0]]);
  return markdown
    .split("\n\n")
    .filter((paragraph) => !said.includes(paragraph.replace(/^\*\*Help\*\*: /, "help: ")))
    .join("\n\n");
}
