// The page at /: contents, reader and chat, with a URL for every page, section and sentence.
// HTML from the server was sanitised there; everything else is inserted as text.

import { copyTools } from "./copy.js";
import { make } from "./dom.js";
import { Reader, isAlone } from "./reader.js";
import { openSearch } from "./search.js";

const root = new URL(document.body.dataset.root, location.href);
const KEY = "bythebook key";
const article = document.querySelector("#article");
const keySection = document.querySelector("#key-section");
const nav = document.querySelector("#contents");
const main = document.querySelector("#page");

class Refused extends Error {}

function ownKey() {
  return sessionStorage.getItem(KEY) ?? "";
}

async function ask(path, body) {
  const headers = ownKey() ? { Authorization: `Bearer ${ownKey()}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const request = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) };
  return fetch(new URL(path, root), request).catch(() => {
    throw new Error("The book's server does not answer. Is it still running?");
  });
}

async function get(path, body) {
  const response = await ask(path, body);
  const told = await response.json().catch(() => ({}));
  if (response.status === 401) throw new Refused(told.message ?? "A key is needed.");
  if (!response.ok) throw new Error(told.message ?? "Something went wrong. Please try again.");
  return told;
}

async function getText(path) {
  const response = await ask(path);
  if (!response.ok) throw new Error("Something went wrong. Please try again.");
  return response.text();
}

// --- URLs and navigation --------------------------------------------------------------------------

const reader = new Reader(article);
let shown = null; // path of the open page; "" is the cover
let book = null;
let questions = []; // suggested ones, which the book answers

function here() {
  const below = location.pathname.slice(root.pathname.length);
  if (!below.startsWith("read/")) return "";
  const chapter = /^\?chapter=\d+$/.test(location.search) ? location.search : ""; // of a PDF file
  return decodeURIComponent(below.slice(5)).replace(/\/$/, "") + chapter;
}

function address(path, at = "") {
  const page = path ? `read/${path.split("/").map(encodeURIComponent).join("/")}` : "";
  return new URL(page + (at ? `#${encodeURIComponent(at)}` : ""), root).href;
}

async function go(path, at = "", quote = "") {
  const url = address(path, at);
  history[url === location.href ? "replaceState" : "pushState"]({ quote }, "", url);
  await show();
}

let showing = 0; // number of the latest request; responses to earlier ones are ignored

async function show() {
  const path = here();
  const mine = (showing += 1);
  tab("read");
  if (path !== shown) {
    try {
      const page = path && (await get(`reader/page?path=${encodeURIComponent(path)}`));
      if (mine !== showing) return;
      if (page) openPage(page);
      else openCover();
    } catch (error) {
      if (mine === showing) fail(error);
      return;
    }
    // The followed link was removed with its page: move the focus to the new page.
    if (shown !== null && document.activeElement === document.body) main.focus({ preventScroll: true });
    shown = path;
  }
  const at = reader.goTo(decodeURIComponent(location.hash.slice(1)), history.state?.quote);
  // Put the highlighted sentence into the URL, so that it can be shared.
  if (at) history.replaceState(history.state, "", address(path, at));
  mark(path, at);
}

function openPage(page) {
  const markdown = page.markdown?.split("/").map(encodeURIComponent).join("/");
  const tools = markdown ? [copyTools(page.labels, () => getText(markdown))] : [];
  reader.show(page, address, ...tools);
  for (const link of reader.article.querySelectorAll(".body a:not(.anchor)")) {
    const target = new URL(link.href);
    const found = pathOf(target);
    if (found !== null) link.href = address(found, decodeURIComponent(target.hash.slice(1)));
    else Object.assign(link, { target: "_blank", rel: "noopener" });
  }
  document.title = `${page.title} · ${book.title}`;
  chat.setAttribute("page", page.url); // among similar passages, the open page ranks first
}

function openCover() {
  document.title = book.title;
  chat.removeAttribute("page");
  reader.cover(book, address, questions);
}

function fail(error) {
  if (error instanceof Refused) askForKey();
  else reader.say(error.message);
  shown = null;
}

// --- contents -------------------------------------------------------------------------------------

function listContents() {
  const parts = book.parts.map((part, at) => {
    const alone = isAlone(part);
    const heading = make("h2", { id: `part-${at}`, dir: "auto", class: alone && "unseen" }, part.title);
    const links = part.pages.map((page) =>
      make("li", {}, make("a", { href: address(page.path), dir: "auto", "data-path": page.path }, page.title)),
    );
    const list = make("ul", { "aria-labelledby": heading.id }, ...links);
    return make("section", { lang: part.language }, heading, list);
  });
  nav.replaceChildren(...parts);
}

function mark(path, at) {
  for (const link of nav.querySelectorAll("a[data-path]")) {
    const current = link.dataset.path === path;
    link.toggleAttribute("aria-current", current);
    if (current) link.setAttribute("aria-current", "page");
    link.parentElement.querySelector("ul")?.remove();
    if (!current) continue;
    link.parentElement.append(reader.headings(address, path));
    link.parentElement.scrollIntoView({ block: "nearest" });
  }
  reader.markHeading(nav, at);
}

// --- the chat -------------------------------------------------------------------------------------

const chat = make("by-the-book", { layout: "page", server: root.href });

async function openChat() {
  const key = ownKey() || document.body.dataset.key;
  if (key) chat.setAttribute("key", key);
  ({ questions } = await get("reader/suggestions").catch(() => ({ questions: [] })));
  chat.setAttribute("suggestions", questions.join("|"));
  await import(new URL("widget.js", root));
  document.querySelector("#chat").replaceChildren(chat);
  if (shown === "") openCover(); // again, now with the suggested questions
}

document.addEventListener("bythebook:ask", (event) => {
  tab("ask");
  chat.ask(event.detail.text);
});

// --- the form for an API key, if one is required --------------------------------------------------

function askForKey() {
  const form = document.querySelector("#key-form");
  const said = document.querySelector("#key-error");
  document.body.classList.add("locked");
  keySection.hidden = false;
  article.replaceChildren();
  form.key.focus();
  form.onsubmit = async (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, form.key.value.trim());
    said.textContent = "";
    try {
      await open();
    } catch (error) {
      sessionStorage.removeItem(KEY);
      said.textContent = error.message;
      form.key.select();
    }
  };
}

// --- tabs of narrow windows, contents toggle of wide ones -----------------------------------------

function tab(name) {
  document.body.dataset.tab = name;
  for (const button of document.querySelectorAll("#tabs button")) {
    button.setAttribute("aria-pressed", String(button.dataset.show === name));
  }
}

for (const button of document.querySelectorAll("#tabs button")) {
  button.addEventListener("click", () => tab(button.dataset.show));
}

document.querySelector("#contents-toggle").addEventListener("click", (event) => {
  const open = document.body.classList.toggle("without-contents");
  event.currentTarget.setAttribute("aria-expanded", String(!open));
});

// --- links within the book and citations opened from the chat -------------------------------------

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const url = new URL(link.href);
  const inside = url.origin === location.origin && isOurs(url.pathname);
  if (!inside || link.classList.contains("skip")) return;
  event.preventDefault();
  history.pushState({}, "", url.href);
  show();
});

function isOurs(path) {
  return path === root.pathname || path.startsWith(`${root.pathname}read/`);
}

/** Return the path of the book's page that a link leads to on the published site, or null. */
function pathOf(target) {
  const path = decodeURIComponent(target.pathname).replace(/^\/|\/$/g, "") + decodeURIComponent(target.search);
  return book.parts.some((part) => part.pages.some((page) => page.path === path)) ? path : null;
}

document.addEventListener("bythebook:open", (event) => {
  const { url, link, quote } = event.detail;
  const target = new URL(url || link, location.href);
  const path = pathOf(target);
  if (path === null) return;
  event.preventDefault();
  go(path, decodeURIComponent(target.hash.slice(1).split(":~:")[0]), quote);
});

window.addEventListener("popstate", show);

// --- start-up -------------------------------------------------------------------------------------

async function open() {
  book = await get("reader/contents");
  document.body.classList.remove("locked");
  keySection.hidden = true;
  document.querySelector("#title").textContent = book.title;
  document.documentElement.lang = book.language;
  listContents();
  await show();
  await openChat();
}

openSearch(document.querySelector("#search"), {
  find: (text) => get("reader/search", { text }),
  go: (found) => go(found.path, found.at, found.snippet.replace(/…$/, "")),
});
open().catch(fail);
