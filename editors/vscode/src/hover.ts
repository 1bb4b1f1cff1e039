/** Hovers as VS Code needs them: it shows the message of a finding above, and once is enough. */

export function withoutMessages(markdown: string, messages: readonly string[]): string {
  return markdown
    .split("\n\n")
    .filter((paragraph) => !messages.includes(paragraph))
    .join("\n\n");
}
