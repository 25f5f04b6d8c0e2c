// Copy a text that is read when the button is pressed; a status line says whether it worked.

import { make } from "./dom.js";

export function copyTools(labels, read) {
  const button = make("button", { type: "button", class: "copy-page" }, labels.copyPage);
  const status = make("span", { role: "status", dir: "auto" });
  button.addEventListener("click", async () => {
    status.textContent = "";
    try {
      await copyText(read());
      status.textContent = labels.copied;
    } catch {
      status.textContent = labels.failed;
    }
  });
  return make("div", { class: "tools" }, button, status);
}

// Safari allows the clipboard only within the click itself: it gets a promise of the text.
async function copyText(text) {
  if (typeof ClipboardItem !== "function" || !navigator.clipboard?.write) {
    await navigator.clipboard.writeText(await text);
    return;
  }
  const blob = text.then((words) => new Blob([words], { type: "text/plain" }));
  await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
}
