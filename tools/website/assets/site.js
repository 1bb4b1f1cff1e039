// Narrows the table of rules down by words; all else on the site works without a script.
(() => {
  const form = document.querySelector(".tl-filters");
  if (!form) return;
  const rules = [...document.querySelectorAll(".tl-rule")].map((rule) => [rule, rule.textContent.toLowerCase()]);
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Words in code, name or summary";
  field.setAttribute("aria-label", field.placeholder);
  const narrow = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const [rule, text] of rules) rule.hidden = !words.every((word) => text.includes(word));
  };
  field.addEventListener("input", narrow);
  form.addEventListener("reset", () => setTimeout(narrow));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.prepend(field);
})();
