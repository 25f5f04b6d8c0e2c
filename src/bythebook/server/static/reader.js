// Show a page of the book, and scroll to a section or sentence of it.

import { letters, make } from "./dom.js";

const NARROW = "(max-width: 60rem)";

// A module with a single page of the same name needs no heading.
export function isAlone(part) {
  return part.pages.length === 1 && part.pages[0].title === part.title;
}

export class Reader {
  constructor(article) {
    this.article = article;
    this.page = null;
  }

  show(page, address, ...tools) {
    this.page = page;
    const article = this.article;
    article.className = "text";
    article.lang = page.language;
    article.dir = page.direction;
    const body = make("div", { class: "body" });
    body.innerHTML = page.html;
    body.addEventListener("error", ({ target }) => target.remove(), true); // an image that is not there
    for (const link of body.querySelectorAll("a.anchor")) link.href = address(page.path, link.hash.slice(1));
    const above = page.module && page.module !== page.title ? [make("p", { class: "module", dir: "auto" }, page.module)] : [];
    article.replaceChildren(...above, make("h1", { dir: "auto" }, page.title), ...tools, body, this.#turns(page, address));
  }

  #turns(page, address) {
    const turn = (entry, name, sign) =>
      entry
        ? [make("a", { class: name, href: address(entry.path), rel: name === "next" ? "next" : "prev" }, make("small", {}, sign), make("span", { dir: "auto" }, entry.title))]
        : [];
    return make("nav", { class: "turns", "aria-label": "Pages" }, ...turn(page.previous, "previous", "Previous"), ...turn(page.next, "next", "Next"));
  }

  cover(book, address, questions) {
    this.page = null;
    const article = this.article;
    article.className = "cover";
    article.lang = book.language;
    article.removeAttribute("dir");
    const first = book.parts[0]?.pages[0];
    const about = `${book.pages} pages · ${book.words.toLocaleString()} words`;
    const parts = book.parts.filter((part) => !(isAlone(part) && part.pages[0] === first)).map((part) =>
      make("section", { lang: part.language }, make("h2", { dir: "auto" }, part.title),
        make("ol", {}, ...part.pages.map((page) => make("li", {}, make("a", { href: address(page.path), dir: "auto" }, page.title))))),
    );
    article.replaceChildren(
      make("header", {}, make("h1", { dir: "auto" }, book.title),
        make("p", { class: "about" }, about),
        ...(first ? [make("a", { class: "start", href: address(first.path) }, "Start reading")] : [])),
      ...this.#questions(questions),
      make("div", { class: "parts" }, ...parts),
    );
  }

  #questions(questions) {
    if (!questions.length) return [];
    const asked = questions.map((text) => {
      const button = make("button", { type: "button", dir: "auto" }, text);
      button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("bythebook:ask", { detail: { text } })));
      return make("li", {}, button);
    });
    return [make("section", { class: "questions" }, make("h2", {}, "Questions it answers"), make("ul", {}, ...asked))];
  }

  say(message) {
    this.article.className = "text";
    this.article.replaceChildren(make("h1", {}, "This page cannot be shown"), make("p", { class: "failure", role: "alert" }, message));
  }

  headings(address, path) {
    const items = this.page.headings
      .filter((heading) => heading.level <= 3)
      .map((heading) => make("li", { class: `level-${heading.level}` }, make("a", { href: address(path, heading.anchor), dir: "auto", "data-anchor": heading.anchor }, heading.text)));
    return make("ul", { "aria-label": "On this page" }, ...items);
  }

  markHeading(nav, at) {
    const section = this.#sectionOf(document.getElementById(at.split("..")[0]));
    for (const link of nav.querySelectorAll("a[data-anchor]")) {
      if (link.dataset.anchor === section) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  }

  #sectionOf(element) {
    if (!element || !this.article.contains(element)) return "";
    let before = element.closest(".body > *");
    while (before && !/^H[2-6]$/.test(before.tagName)) before = before.previousElementSibling;
    return before?.id ?? "";
  }

  // --- scrolling to a target ----------------------------------------------------------------------

  // Scroll to the units that contain the quote (first below the heading `at`) or that `at` names:
  // one, or the first and the last ("u1..u2"); otherwise to the heading or the top. Return the
  // names of the highlighted units, if any.
  goTo(at, quote = "") {
    this.#clear();
    const [target, last] = at.split("..").map((id) => this.#named(id));
    const isUnit = target?.hasAttribute("data-unit");
    const units = isUnit ? this.#between(target, last ?? target) : this.#unitsOf(quote, target);
    if (units) this.#reveal(units);
    else if (target) target.scrollIntoView({ block: "start" });
    else this.#toTop();
    return units ? [...new Set([units[0].id, units.at(-1).id])].join("..") : at;
  }

  #named(id) {
    const named = id && document.getElementById(id);
    return named && this.article.contains(named) ? named : null;
  }

  get #units() {
    return [...this.article.querySelectorAll("[data-unit]")];
  }

  #between(first, last) {
    const units = this.#units;
    return units.slice(units.indexOf(first), Math.max(units.indexOf(first), units.indexOf(last)) + 1);
  }

  #unitsOf(quote, heading) {
    const units = this.#units;
    const isBelow = (unit) => heading.compareDocumentPosition(unit) & Node.DOCUMENT_POSITION_FOLLOWING;
    const find = (words) => (heading && unitsOf(words, units.filter(isBelow))) ?? unitsOf(words, units);
    // A table or code that goes on in another passage repeats its header there: leave that out.
    const bare = quote.replace(/^ *\d+[.)] /gm, ""); // without the numbers of a list
    return find(quote) ?? find(bare) ?? find(bare.split(/\n *\|[-:| ]+\|\n/).at(-1)) ?? find(bare.replace(/^ *(```|~~~).*$/gm, "")) ?? find(bare.split("\n")[0]);
  }

  #reveal(units) {
    for (const unit of units) unit.classList.add("cited");
    units[0].tabIndex = -1;
    const tall = units[0].getBoundingClientRect().height > innerHeight * 0.6;
    units[0].scrollIntoView({ block: tall ? "start" : "center", behavior: "instant" });
    const height = units.at(-1).getBoundingClientRect().bottom - units[0].getBoundingClientRect().top;
    if (height < innerHeight * 0.8) units.at(-1).scrollIntoView({ block: "nearest", behavior: "instant" });
    units[0].focus({ preventScroll: true });
  }

  #clear() {
    for (const unit of this.article.querySelectorAll(".cited")) {
      unit.classList.remove("cited");
      unit.removeAttribute("tabindex");
    }
  }

  #toTop() {
    document.querySelector("#page").scrollTo({ top: 0, behavior: "instant" });
    if (matchMedia(NARROW).matches) scrollTo({ top: 0, behavior: "instant" });
  }
}

// Return the shortest run of adjacent units that contains the words, or null.
function unitsOf(quote, units) {
  const wanted = letters(quote);
  if (!wanted) return null;
  let text = "";
  const spans = units.map((unit) => {
    const start = text.length;
    text += letters(unit.dataset.words ?? unit.textContent);
    return [start, text.length];
  });
  const start = text.indexOf(wanted);
  if (start < 0) return null;
  const end = start + wanted.length;
  const found = units.filter((_, at) => spans[at][0] < end && spans[at][1] > start);
  return found.length ? found : null;
}
