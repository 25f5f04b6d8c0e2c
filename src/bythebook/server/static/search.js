// Search as you type: a combobox of the server's results, by title and by meaning.

import { letters, make } from "./dom.js";

const PAUSE_MS = 120;

export function openSearch(form, { find, go }) {
  const box = form.querySelector("input");
  const list = form.querySelector("[role=listbox]");
  const count = form.querySelector("[role=status]");
  let results = [];
  let active = -1;
  let asked = 0;
  let timer = 0;

  async function look() {
    const text = box.value.trim();
    const mine = (asked += 1);
    if (!text) return close();
    let told;
    try {
      told = await find(text);
    } catch (error) {
      if (mine === asked) say(error.message);
      return undefined;
    }
    if (mine !== asked) return undefined; // the text has changed since
    results = told.results;
    if (!results.length) return say("Nothing in the book is near these words.");
    list.replaceChildren(...results.map((found, at) => option(found, at, text)));
    count.textContent = `${results.length} places found`;
    return open();
  }

  function option(found, at, text) {
    const element = make("div", { role: "option", id: `found-${at}`, class: found.kind, "aria-selected": "false" },
      make("span", { class: "title", dir: "auto" }, ...marked(found.title, text)),
      make("span", { class: "trail", dir: "auto" }, found.trail));
    if (found.snippet) element.append(make("span", { class: "snippet", dir: "auto" }, ...marked(found.snippet, text)));
    element.addEventListener("pointerdown", (event) => event.preventDefault());
    element.addEventListener("click", () => choose(at));
    return element;
  }

  function choose(at) {
    const found = results[at];
    if (!found) return;
    close();
    box.blur();
    go(found);
  }

  function select(at) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = (at + results.length) % results.length;
    const chosen = list.children[active];
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", chosen.id);
  }

  function open() {
    active = -1;
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
    box.removeAttribute("aria-activedescendant");
  }

  function close() {
    results = [];
    list.hidden = true;
    list.replaceChildren();
    count.textContent = "";
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  }

  function say(message) {
    results = [];
    list.replaceChildren(make("p", { class: "nothing" }, message));
    count.textContent = message;
    open();
  }

  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  box.addEventListener("focus", () => box.value.trim() && look());
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget)) close();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      asked += 1;
      close();
      box.value = "";
    } else if (results.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      select(event.key === "ArrowDown" ? active + 1 : Math.max(active, 0) - 1);
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    if (!results.length) await look();
    choose(Math.max(active, 0));
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable]");
    const slash = event.key === "/" && !typing;
    if (!slash && !(event.key === "k" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
}

// Return the text with <mark> around each typed word that starts a word in it.
function marked(text, typed) {
  const words = typed.split(/\s+/).map(letters).filter(Boolean);
  return text.split(/([\p{L}\p{N}]+)/u).map((part) =>
    words.some((word) => letters(part).startsWith(word)) ? make("mark", {}, part) : part,
  );
}
