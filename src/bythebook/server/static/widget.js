// <by-the-book>: a chat with the book, embedded in any page.
//
//   <script src="https://books.example/widget.js" data-key="btp_…" async></script>
//
// The script creates the element unless the page has one, and copies its own data-… options to it.
// The element has a shadow root with its own stylesheet. HTML from the server was sanitised there
// and is sanitised again here with an allow list; everything else is inserted as text.

(() => {
  "use strict";
  const NAME = "by-the-book";
  if (customElements.get(NAME)) return;

  const script = document.currentScript;
  const HOME = script?.src ? new URL(".", script.src).href : `${location.origin}/`;
  const STYLES = "{{styles}}";
  const SILENCE_MS = 45_000; // longer than three heartbeats of the server
  const KEPT_TURNS = 40;
  const SITE_COLOURS = ["--ifm-color-primary", "--md-primary-fg-color"]; // Docusaurus, MkDocs
  const LEAST_SELECTED = 10;
  const MOST_SELECTED = 5000;

  // --- texts ------------------------------------------------------------------------------------

  // English is part of the script; other languages are fetched, such as widget/ur.json.
  const ENGLISH = "{{words}}";
  const LANGUAGES = "{{languages}}";
  const RIGHT_TO_LEFT = /^(ar|fa|he|ur)/;

  // --- elements -----------------------------------------------------------------------------------

  const ICONS = {
    book: "M12 6.5C10 5 7 4.5 3.5 4.8v13.4c3.5-.3 6.5.2 8.5 1.7 2-1.5 5-2 8.5-1.7V4.8C17 4.5 14 5 12 6.5Zm0 0v13.4",
    send: "M12 19V5m-6 6 6-6 6 6",
    close: "m6 6 12 12M18 6 6 18",
    fresh: "M12 5v14M5 12h14",
    copy: "M9 9h10v11H9zM5 15V4h10",
    done: "m5 13 4.5 4.5L19 7",
    up: "M7 11v9H4v-9zm0 0 4-8c1.6 0 2.6 1 2.3 2.6L12.7 9H19c1.2 0 2 1 1.8 2.2l-1.2 7A2.2 2.2 0 0 1 17.4 20H7",
    down: "M17 13V4h3v9zm0 0-4 8c-1.6 0-2.6-1-2.3-2.6l.6-3.4H5c-1.2 0-2-1-1.8-2.2l1.2-7A2.2 2.2 0 0 1 6.6 4H17",
    retry: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4h4",
    quote: "M6 17c2 0 3-1.5 3-4V8H4v5h3M16 17c2 0 3-1.5 3-4V8h-5v5h3",
    warn: "M12 4 2.5 20h19zm0 6v4m0 2.5v.1",
    none: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm-4 9h8",
  };

  /** Create an element: make("p.note", { dir: "auto" }, …children); the attributes are optional. */
  function make(what, ...children) {
    const [tag, ...classes] = what.split(".");
    const element = document.createElement(tag);
    const plain = children[0]?.constructor === Object;
    const options = plain ? children.shift() : {};
    if (tag === "button") element.type = "button";
    element.classList.add(...classes);
    for (const [name, value] of Object.entries(options)) {
      if (value === null || value === undefined) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child));
    return element;
  }

  function icon(name) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const path = document.createElementNS(space, "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);
    return svg;
  }

  const iconButton = (name, label, onclick, more = {}) =>
    make("button.icon", { "aria-label": label, title: label, onclick, ...more }, icon(name));

  // "m…" allows MathML; the lookahead excludes the active or obsolete elements with that letter.
  const ALLOWED = /^(a|blockquote|br|code|em|h[3-6r]|img|li|ol|p|pre|s|span|strong|sup|t(able|body|d|h|head|r)|ul|m(?!eta|arquee|enu|glyph|action)[a-z]+)$/;
  const KEPT_ATTRIBUTES = /^(class|data-cite|start|display|mathvariant|stretchy|columnalign|notation)$/;
  const trusted = globalThis.trustedTypes?.createPolicy(NAME, { createHTML: (html) => html });

  const originOf = (url) => (URL.canParse(url, location.href) ? new URL(url, location.href).origin : null);

  /** Return HTML from the server as nodes, without active content and images of other sites. */
  function safe(html, origins) {
    const template = document.createElement("template");
    template.innerHTML = trusted ? trusted.createHTML(html) : html;
    for (const element of template.content.querySelectorAll("*")) {
      if (!ALLOWED.test(element.localName)) element.replaceWith(element.textContent);
      if (element.localName === "img" && !(address(element.getAttribute("src")) && origins.includes(originOf(element.getAttribute("src"))))) element.remove();
      for (const { name, value } of [...element.attributes]) {
        const leads = name === "href" && element.localName === "a" && address(value);
        const shows = name === "src" && element.localName === "img";
        if (!leads && !shows && !KEPT_ATTRIBUTES.test(name)) element.removeAttribute(name);
      }
    }
    return template.content;
  }

  /** Return a URL if it is safe as a link, else null. Links to the published site are rewritten to
   *  the origin that shows the page now, such as a preview. */
  function address(url) {
    if (!/^(https?:\/\/|\/(?![/\\])|#)/.test(url ?? "")) return null;
    const published = document.querySelector("link[rel=canonical]")?.href;
    const origin = published && new URL(published).origin;
    return origin && url.startsWith(`${origin}/`) ? location.origin + url.slice(origin.length) : url;
  }

  const placeOf = ({ chapter, section }) =>
    [...new Set([chapter, section].filter(Boolean))].join(" › ");

  // --- requests -----------------------------------------------------------------------------------

  const failure = (kind, message = "", seconds = 0) =>
    Object.assign(new Error(message), { kind, until: Date.now() + seconds * 1000 });

  /** Yield the events of a stream up to the last one; a stream that ends early throws. */
  async function* told(response, alive) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      alive();
      if (done) throw failure("cut");
      const events = (rest + value).split(/\r?\n\r?\n/);
      rest = events.pop();
      for (const event of events) {
        const fields = { event: "message", data: "" };
        for (const line of event.split(/\r?\n/)) {
          const [, name, text] = /^(\w+): ?(.*)$/.exec(line) ?? [];
          if (name in fields) fields[name] = name === "data" ? fields.data + text : text;
        }
        if (fields.data) yield [fields.event, JSON.parse(fields.data)];
        if (/^(done|error)$/.test(fields.event)) return;
      }
    }
  }

  async function failureOf(response) {
    const body = await response.json().catch(() => ({}));
    const said = [body.message, body.suggested_action].filter(Boolean).join(" ");
    const seconds = Number(response.headers.get("Retry-After")) || 10;
    if (response.status === 429) return failure("busy", "", seconds);
    if (response.status === 401) return failure("key");
    return failure("broken", said);
  }

  // --- the element --------------------------------------------------------------------------------

  class ByTheBook extends HTMLElement {
    #root = this.attachShadow({ mode: "open" });
    #sheet = new CSSStyleSheet();
    #own = new CSSStyleSheet(); // the author's accent colour
    #parts = {};
    #words = ENGLISH;
    #turns = [];
    #thread; // id, assigned by the server
    #asking = null; // AbortController of the current request
    #selection = null;
    #back = null; // element that had the focus before the panel opened
    #stop = null; // AbortController of the event listeners
    #hiding = 0;
    #follows = true; // scroll along with the answer until the user scrolls

    async connectedCallback() {
      if (this.title) {
        this.dataset.title = this.title; // or the browser would show it as a tooltip
        this.removeAttribute("title");
      }
      if (this.dataset.theme) this.setAttribute("theme", this.dataset.theme); // data-theme is overwritten below
      this.#stop = new AbortController();
      this.#sheet.replaceSync(STYLES);
      this.#root.adoptedStyleSheets = [this.#sheet, this.#own];
      this.#recall();
      await this.#learn();
      if (!this.isConnected) return;
      this.#build();
      this.#listen();
      this.#dress();
      if (!this.#isPage && this.#session("open") && !this.#isSmall) this.open({ focus: false });
    }

    disconnectedCallback() {
      this.#stop?.abort();
      this.#asking?.abort();
    }

    option(name) {
      return this.getAttribute(name) ?? this.dataset[name] ?? "";
    }

    get #isPage() {
      return this.option("layout") === "page";
    }

    get #isSmall() {
      return matchMedia("(max-width: 40rem)").matches;
    }

    get #server() {
      return new URL(this.option("server") || HOME, location.href);
    }

    get #language() {
      const asked = (this.option("language") || document.documentElement.lang).toLowerCase();
      return LANGUAGES.find((name) => asked.startsWith(name)) ?? "en";
    }

    /** Fetch the texts of another language; fall back to English. */
    async #learn() {
      if (this.#language === "en") return;
      const words = await fetch(new URL(`widget/${this.#language}.json`, this.#server)).catch(() => null);
      if (words?.ok) this.#words = await words.json();
    }

    get #heading() {
      return this.option("title") || this.#words.ask;
    }

    // --- storage ---

    get #storageKey() {
      return `${NAME}:${this.#server.href}`;
    }

    #recall() {
      try {
        const kept = JSON.parse(localStorage.getItem(this.#storageKey)) ?? {};
        this.#turns = kept.turns ?? [];
        this.#thread = kept.thread;
      } catch {
        this.#turns = []; // storage is blocked or contains something else
      }
      for (const turn of this.#turns) if (turn.state === "writing") turn.state = "stopped";
    }

    #keep() {
      const turns = this.#turns.slice(-KEPT_TURNS);
      try {
        localStorage.setItem(this.#storageKey, JSON.stringify({ thread: this.#thread, turns }));
      } catch {
        // storage is blocked: the chat is lost on reload
      }
    }

    #session(name, value) {
      try {
        if (value === undefined) return sessionStorage.getItem(`${this.#storageKey}:${name}`);
        sessionStorage.setItem(`${this.#storageKey}:${name}`, value);
      } catch {
        // storage is blocked: the panel starts closed
      }
      return "";
    }

    // --- building the elements ---

    #build() {
      const words = this.#words;
      const parts = this.#parts;
      parts.launcher = make(
        "button.launcher",
        { "aria-expanded": "false", "aria-haspopup": "dialog", onclick: () => this.toggle() },
        icon("book"),
        make("span", this.#heading),
      );
      parts.scrim = make("div.scrim", { hidden: "", onclick: () => this.close() });
      parts.log = make("div.log", { role: "log", "aria-live": "off", "aria-label": this.#heading, tabindex: "0" });
      parts.status = make("div.unseen", { role: "status" });
      parts.card = make("div.card", { id: "card", role: "tooltip", hidden: "" });
      parts.quote = make("div.chosen", { hidden: "" });
      parts.input = make("textarea", { rows: "1", maxlength: "1000", dir: "auto", "aria-label": words.question, placeholder: words.placeholder });
      parts.send = make("button.send", { type: "submit" }, icon("send"));
      parts.form = make("form.composer", parts.quote, make("div.line", parts.input, parts.send));
      parts.promise = make("p.promise");
      parts.panel = make(
        "div.panel",
        this.#isPage ? {} : { role: "dialog", "aria-label": this.#heading, hidden: "" },
        make(
          "header",
          make("span.badge", icon("book")),
          make("h2", this.#heading),
          iconButton("fresh", words.fresh, () => this.clear()),
          this.#isPage ? null : iconButton("close", words.close, () => this.close()),
        ),
        parts.log,
        parts.form,
        parts.promise,
        parts.card,
        parts.status,
      );
      parts.about = make("button.about", { hidden: "", onclick: () => this.#askAboutSelection() }, icon("quote"), words.about);
      const shown = this.#isPage ? [parts.panel] : [parts.launcher, parts.scrim, parts.panel];
      parts.frame = make("section.frame", { "aria-label": this.#heading, lang: this.#language }, ...shown, parts.about);
      parts.frame.dir = RIGHT_TO_LEFT.test(this.#language) ? "rtl" : "ltr";
      this.#root.replaceChildren(parts.frame);
      this.#showComposer();
      this.#showAll();
    }

    /** Adopt the theme of the page and the author's accent colour. */
    #dress() {
      this.dataset.theme = this.#theme();
      this.#parts.frame.classList.toggle("start", /left|start/.test(this.option("position")));
      const site = getComputedStyle(document.documentElement);
      const accent = this.option("accent") || SITE_COLOURS.map((name) => site.getPropertyValue(name)).find(Boolean);
      if (accent && CSS.supports("color", accent)) this.#own.replaceSync(`:host { --author: ${accent} }`);
    }

    #theme() {
      const asked = this.getAttribute("theme") || document.documentElement.dataset.theme;
      if (/^(light|dark)$/.test(asked)) return asked;
      for (const element of [document.body, document.documentElement]) {
        const [red, green, blue, alpha] = getComputedStyle(element).backgroundColor.match(/[\d.]+/g) ?? [];
        if (red && alpha !== "0") return 2 * red + 5 * green + +blue < 800 ? "dark" : "light";
      }
      return "light"; // no background colour: browsers show white
    }

    // --- event listeners ---

    #listen() {
      const { signal } = this.#stop;
      const parts = this.#parts;
      const on = (target, name, work) => target.addEventListener(name, work, { signal });
      on(parts.form, "submit", (event) => {
        event.preventDefault();
        if (this.#asking) this.stop();
        else this.#submit();
      });
      on(parts.input, "keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        if (!this.#asking) this.#submit();
      });
      on(parts.input, "input", () => this.#grow());
      on(parts.panel, "keydown", (event) => this.#keyInPanel(event));
      for (const name of ["pointerover", "focusin"]) on(parts.panel, name, (event) => this.#pointAt(event));
      for (const name of ["pointerout", "focusout"]) on(parts.panel, name, () => this.#hideCardSoon());
      const scrolled = () => {
        this.#follows = false;
        this.#hideCard();
      };
      for (const name of ["wheel", "touchmove"]) on(parts.log, name, scrolled);
      on(document, "keydown", (event) => this.#shortcut(event));
      on(document, "selectionchange", () => this.#offerSelection());
      on(document, "scroll", () => this.#offerSelection());
      on(window, "resize", () => this.#hideCard());
      on(window, "online", () => this.#showAll());
      on(parts.about, "pointerdown", (event) => event.preventDefault()); // keeps the selection
      on(matchMedia("(prefers-color-scheme: dark)"), "change", () => this.#dress());
      const themes = new MutationObserver(() => {
        this.#dress();
        setTimeout(() => this.isConnected && this.#dress(), 400); // after the page's colour transition
      });
      const attributes = ["class", "style", "data-theme", "data-md-color-scheme"];
      for (const root of [document.documentElement, document.body]) themes.observe(root, { attributes: true, attributeFilter: attributes });
      signal.addEventListener("abort", () => themes.disconnect());
    }

    #shortcut(event) {
      const keys = (this.option("shortcut") || "alt+q").toLowerCase().split("+");
      const wanted = keys.pop();
      const pressed = event.key.toLowerCase() === wanted || event.code.toLowerCase() === `key${wanted}`;
      const held = ["alt", "ctrl", "meta", "shift"].every((name) => event[`${name}Key`] === keys.includes(name));
      if (!pressed || !held) return;
      event.preventDefault();
      if (this.#selected()) this.#askAboutSelection();
      else if (this.#isPage) this.#parts.input.focus();
      else this.toggle();
    }

    #keyInPanel(event) {
      if (event.key === "Escape") {
        event.stopPropagation();
        if (!this.#parts.card.hidden) this.#hideCard();
        else if (!this.#isPage) this.close();
      } else if (event.key === "Tab" && !this.#isPage) {
        const stops = [...this.#parts.panel.querySelectorAll("a[href], button, textarea, input, summary, [tabindex]")];
        const open = stops.filter((stop) => !stop.disabled && stop.tabIndex >= 0 && stop.offsetParent);
        const edge = event.shiftKey ? open[0] : open.at(-1);
        if (this.#root.activeElement !== edge) return;
        event.preventDefault();
        (event.shiftKey ? open.at(-1) : open[0]).focus();
      }
    }

    // --- opening and closing ---

    toggle() {
      if (this.#parts.panel.hidden) this.open();
      else this.close();
    }

    open({ focus = true } = {}) {
      const { panel, scrim, launcher, input } = this.#parts;
      if (panel.hidden) this.#back = document.activeElement === this ? launcher : document.activeElement;
      panel.hidden = scrim.hidden = false;
      panel.setAttribute("aria-modal", String(this.#isSmall));
      launcher.setAttribute("aria-expanded", "true");
      this.#session("open", "1");
      this.#follow();
      this.#grow();
      if (focus) input.focus({ preventScroll: true });
    }

    close() {
      const { panel, scrim, launcher } = this.#parts;
      panel.hidden = scrim.hidden = true;
      launcher.setAttribute("aria-expanded", "false");
      this.#session("open", "");
      this.#hideCard();
      const back = this.#back?.isConnected && this.#back !== document.body ? this.#back : launcher;
      back.focus({ preventScroll: true });
    }

    /** Start a new chat and delete the old one from storage. */
    clear() {
      this.stop();
      this.#turns = [];
      this.#thread = undefined;
      this.#choose(null);
      this.#keep();
      this.#showAll();
      this.#parts.input.focus();
    }

    // --- selections ---

    #selected() {
      const selection = getSelection();
      const text = selection?.toString().trim() ?? "";
      if (text.length < LEAST_SELECTED || !selection.rangeCount) return null;
      const around = selection.getRangeAt(0).commonAncestorContainer;
      if (this.contains(around) || around.parentElement?.closest("input, textarea, [contenteditable]")) return null;
      return { text: text.slice(0, MOST_SELECTED), range: selection.getRangeAt(0) };
    }

    #offerSelection() {
      const { about } = this.#parts;
      const selected = this.#selected();
      about.hidden = !selected;
      if (!selected) return;
      const boxes = [...selected.range.getClientRects()].filter((box) => box.width);
      const end = boxes.at(-1) ?? selected.range.getBoundingClientRect();
      const { width, height } = about.getBoundingClientRect();
      const below = end.bottom + 8 + height < innerHeight;
      about.style.left = `${clamp(end.right - width / 2, 8, innerWidth - width - 8)}px`;
      about.style.top = `${clamp(below ? end.bottom + 8 : end.top - height - 8, 8, innerHeight - height - 8)}px`;
    }

    #askAboutSelection() {
      const selected = this.#selected();
      if (!selected) return;
      this.#parts.about.hidden = true;
      if (!this.#isPage) this.open({ focus: false });
      this.#choose(selected.text);
      this.#parts.input.focus({ preventScroll: true });
      getSelection().removeAllRanges();
    }

    #choose(text) {
      const { quote } = this.#parts;
      const words = this.#words;
      this.#selection = text;
      quote.hidden = !text;
      quote.replaceChildren(
        make("blockquote", { dir: "auto" }, text ?? ""),
        make("small", words.quoted),
        iconButton("close", words.unquote, () => {
          this.#choose(null);
          this.#parts.input.focus();
        }),
      );
    }

    // --- sending questions ---

    #submit() {
      const { input } = this.#parts;
      const text = input.value.trim();
      if (!text) return;
      input.value = "";
      this.#grow();
      const selection = this.#selection;
      this.#choose(null);
      this.ask(text, selection);
    }

    ask(text, selection = null) {
      const body = { message: text, session_id: this.#thread, page_url: this.#page, selected_text: selection, whole_evidence: true };
      return this.#put({ by: "reader", text, selection, body, key: `${Date.now()}${Math.random()}` });
    }

    async #put(asked) {
      if (this.#asking) this.stop();
      const answer = { by: "book", state: "writing", text: "", html: [], citations: [] };
      this.#turns.push(asked, answer);
      this.#follows = true;
      this.#showAll();
      await this.#write(asked, answer);
    }

    stop() {
      this.#asking?.abort("stopped");
    }

    get #page() {
      const page = this.option("page") || location.href.split("#")[0];
      return /^(https?:|\/)/.test(page) ? page.slice(0, 2000) : undefined;
    }

    async #write(asked, answer) {
      const asking = (this.#asking = new AbortController());
      let timer = 0;
      const alive = () => {
        clearTimeout(timer);
        timer = setTimeout(() => asking.abort("silent"), SILENCE_MS);
      };
      this.#showComposer();
      this.#say(this.#words.looking);
      alive();
      try {
        if (!navigator.onLine) throw failure("offline");
        const response = await this.#post("chat/stream", asked.body, asking.signal, asked.key);
        for await (const [name, data] of told(response, alive)) this.#hear(answer, name, data);
      } catch (error) {
        this.#fail(answer, error, asking.signal.reason);
      } finally {
        clearTimeout(timer);
        if (this.#asking === asking) this.#asking = null;
        asked.went = this.#thread;
        if (this.#turns.includes(answer)) this.#keep();
        this.#show(answer);
        this.#showComposer();
      }
    }

    async #post(path, body, signal, once) {
      const headers = { "Content-Type": "application/json" };
      const key = this.option("key");
      if (key) headers["X-API-Key"] = key;
      if (once) headers["Idempotency-Key"] = once;
      const url = new URL(path, this.#server);
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal, credentials: "omit" });
      if (!response.ok) throw await failureOf(response);
      return response;
    }

    #hear(answer, name, received) {
      // Pages of a book without a site URL are paths here: on this site, or in the server's reader.
      const data = JSON.parse(JSON.stringify(received).replaceAll(new URL("read/", this.#server).href, "/"));
      if (name === "session") {
        this.#thread = data.session_id;
      } else if (name === "delta") {
        for (const citation of data.citations ?? []) answer.citations.push(citationOf(citation));
        answer.text += data.text;
        answer.html[data.paragraph] = data.html;
        this.#say(data.text.replace(/\s*(\[\d+\])+/g, ""));
        this.#showWords(answer, data.paragraph);
      } else if (name === "citation") {
        if (!answer.citations.some(({ number }) => number === data.number)) answer.citations.push(citationOf(data));
      } else if (name === "done") {
        Object.assign(answer, {
          state: "done",
          html: [data.html],
          level: data.confidence_level,
          refused: !data.should_answer && (data.refusal_type ?? "low_relevance"),
          nearby: data.nearby ?? [],
          related: data.related,
          smallTalk: data.small_talk,
          remark: data.remark,
          next: data.next_questions ?? [],
          ...disclaimerOf(data.disclaimer ?? ""),
          offlineWriter: data.answered_offline,
          degraded: data.degraded,
          query: data.query_id,
          writer: data.written_by_model ? "model" : "book",
        });
        if (answer.refused) this.#say(this.#refusal(answer));
      } else if (name === "error") {
        throw failure("broken", `${data.message} ${data.suggested_action}`);
      }
    }

    #fail(answer, error, reason) {
      if (reason === "stopped") answer.state = "stopped";
      else {
        const gone = navigator.onLine ? (answer.text ? "cut" : "unreachable") : "offline";
        const known = error.kind ? error : failure(reason === "silent" ? "cut" : gone);
        answer.state = "failed";
        answer.failure = { kind: known.kind, message: known.message, until: known.until };
      }
      this.#say(this.#trouble(answer));
    }

    #retry(answer) {
      const [asked] = this.#turns.splice(this.#turns.indexOf(answer) - 1, 2);
      // In the same thread, repeat the request with its idempotency key, so that it is stored once.
      if (asked.key && asked.went === this.#thread) this.#put(asked);
      else this.ask(asked.text, asked.selection);
    }

    // --- showing questions and answers ---

    #say(text) {
      this.#parts.status.textContent = text;
    }

    #grow() {
      const { input } = this.#parts;
      input.style.height = "auto";
      input.style.height = `${Math.min(input.scrollHeight, 160)}px`;
    }

    #showComposer() {
      const { send } = this.#parts;
      const name = this.#asking ? "stop" : "send";
      send.classList.toggle("stop", Boolean(this.#asking));
      send.setAttribute("aria-label", this.#words[name]);
      send.title = this.#words[name];
    }

    #showAll() {
      const { log } = this.#parts;
      const shown = this.#turns.map((turn) => (turn.by === "reader" ? this.#asked(turn) : this.#answered(turn)));
      log.replaceChildren(...(shown.length ? shown : [this.#welcome()]));
      this.#showPromise();
      this.#follow();
    }

    /** Say how the sentences of all answers that are shown were made; any, while one is written. */
    #showPromise() {
      const answers = this.#turns.filter(({ by, refused }) => by === "book" && !refused);
      const writers = new Set(answers.map(({ writer }) => writer ?? "any"));
      this.#parts.promise.textContent = this.#words.promises[writers.size === 1 ? [...writers][0] : "any"];
    }

    #show(answer) {
      const { log } = this.#parts;
      const at = this.#turns.indexOf(answer);
      const old = log.children[at];
      if (at < 0 || !old) return;
      const inside = old.contains(this.#root.activeElement);
      old.replaceWith(this.#answered(answer));
      this.#showPromise();
      this.#follow();
      if (inside) this.#parts.input.focus({ preventScroll: true });
    }

    /** Scroll the last question to the top, so that the answer can be read from its beginning. */
    #follow() {
      const { log } = this.#parts;
      const last = [...log.querySelectorAll(".asked")].at(-1);
      if (this.#follows && last) log.scrollTop = last.offsetTop - 14;
    }

    #showWords(answer, paragraph) {
      const { log } = this.#parts;
      const said = log.children[this.#turns.indexOf(answer)]?.querySelector(".said");
      if (!said) return;
      said.parentElement.querySelector(".looking")?.remove();
      while (said.children.length <= paragraph) said.append(make("div", { dir: "auto" }));
      said.children[paragraph].replaceChildren(this.#marked(answer, answer.html[paragraph]));
      this.#follow();
    }

    get #suggestions() {
      return this.option("suggestions").split("|").map((idea) => idea.trim()).filter(Boolean);
    }

    /** Create a button for each question that asks it. */
    #ideas(questions) {
      const pick = (idea) => {
        this.ask(idea);
        this.#parts.log.focus({ preventScroll: true }); // the button is gone
      };
      return questions.map((idea) => make("button.idea", { dir: "auto", onclick: () => pick(idea) }, idea));
    }

    #welcome() {
      const words = this.#words;
      const ideas = this.#ideas(this.#suggestions);
      return make("div.welcome", make("span.badge", icon("book")),
        make("h3", words.welcome),
        make("p", words.intro),
        ideas.length ? null : make("p", words.hint),
        ...ideas,
      );
    }

    #asked({ text, selection }) {
      return make("div.asked", make("span.unseen", this.#words.you),
        selection ? make("blockquote", { dir: "auto" }, selection) : null,
        make("p", { dir: "auto" }, text),
      );
    }

    #answered(answer) {
      const words = this.#words;
      const said = make("div.said");
      const turn = make(`article.answered.${answer.state}`, { "aria-busy": String(answer.state === "writing") }, said);
      if (answer.state === "writing" && !answer.html.length) turn.append(make("p.looking", make("i"), words.looking));
      if (answer.refused) {
        said.append(...this.#refused(answer));
        if (answer.smallTalk) return turn;
      } else if (answer.state === "done") said.append(...answer.html.flatMap((html) => this.#runs(answer, html)));
      else for (const html of answer.html) said.append(make("div", { dir: "auto" }, this.#marked(answer, html ?? "")));
      if (answer.part) turn.append(make("p.note.part", { dir: "auto" }, words.part.replace("{part}", answer.part)));
      for (const name of ["low", "degraded"]) if (answer[name]) turn.append(make("p.note.warn", icon("warn"), words[name]));
      if (answer.offlineWriter) turn.append(make("p.note", words.offlineWriter));
      if (answer.state === "done") turn.append(this.#fromSelection(answer), this.#actions(answer), this.#next(answer));
      if (/stopped|failed/.test(answer.state)) turn.append(this.#troubled(answer));
      return turn;
    }

    /** Say that the book does not answer, and what it does say; to small talk only a friendly line. */
    #refused(answer) {
      const refusal = this.#refusal(answer);
      if (answer.smallTalk) return [make("p.remark", { dir: "auto" }, refusal), make("div.ideas", ...this.#ideas(this.#suggestions))];
      return [make("p.refusal", icon("none"), refusal), this.#related(answer), this.#nearby(answer)];
    }

    #refusal({ refused, text, smallTalk, remark }) {
      const kind = refused === "selected_text_missing" ? "unselected" : "refused";
      const said = smallTalk ? remark : text;
      if (this.#language !== "en" || !said) return this.#words[smallTalk ? "hello" : kind];
      return `${said.replace(/\.$/, "")}.`;
    }

    /** Show what the book says about the subject of a question that it does not answer. */
    #related({ related }) {
      if (!related) return "";
      const { quote, title, link } = related;
      const place = { url: withoutFragment(link), link, quote, section: title };
      return make("div.related", make("h3", this.#words.does),
        make("blockquote", { dir: "auto" }, quote),
        make("p", { dir: "auto" }, this.#link("a.topic", place, {}, title)),
      );
    }

    #next({ next = [], refused }) {
      const asked = new Set(this.#turns.map(({ by, text }) => by === "reader" && text));
      const ideas = this.#ideas(refused ? [] : next.filter((question) => !asked.has(question)));
      return ideas.length ? make("div.next", make("h3", this.#words.next), ...ideas) : "";
    }

    /** Return the runs of an answer: blocks of the book that have their source line in common. */
    #runs(answer, html) {
      const runs = [];
      let blocks = [];
      for (const block of [...this.#marked(answer, html).children]) {
        blocks.push(block);
        const cited = [...block.querySelectorAll(".marker")].map(({ citation }) => citation).filter(Boolean);
        if (!cited.length) continue;
        const last = runs.at(-1);
        const places = new Set([...cited, ...(last?.cited ?? [])].map(({ url }) => url));
        if (last && places.size === 1) {
          last.blocks.push(...blocks);
          last.cited.push(...cited);
        } else runs.push({ blocks, cited });
        blocks = [];
      }
      if (blocks.length) runs.push({ blocks, cited: [] });
      return runs.map(({ blocks, cited }) => make("div.run", { dir: "auto" }, ...withoutLastMarker(blocks), ...this.#origins(answer, cited)));
    }

    /** Return the source lines of a run: one for each section, with the numbers of its citations. */
    #origins(answer, cited) {
      const words = this.#words;
      const { selection } = this.#question(answer);
      return [...Map.groupBy(new Set(cited), ({ url }) => url).values()].map((same) => {
        const [citation] = same;
        const all = same.map(({ number }) => number);
        const range = all[2] && all.at(-1) - all[0] < all.length;
        const numbers = range ? `${all[0]}–${all.at(-1)}` : all.join(" ");
        const place = placeOf(citation) || words.source;
        const quote = same.map((each) => each.quote).join("\n");
        const link = this.#link("a.source", { ...citation, quote }, {},
          make("span.unseen", words.source), make("b", { dir: "ltr" }, numbers), make("bdi", place),
        );
        link.citation = citation;
        const section = { ...citation, link: citation.url, quote: "" };
        const on = !selection && address(citation.url) && this.#link("a.on", section, { "aria-label": `${words.on}: ${place}` }, words.on);
        return make("p.origin", link, on);
      });
    }

    /** Return the HTML of an answer with links in place of its citation markers. */
    #marked(answer, html) {
      const nodes = safe(html, [location.origin, ...answer.citations.map(({ url }) => originOf(url))]);
      for (const link of nodes.querySelectorAll("a[href]")) {
        const url = link.getAttribute("href");
        const target = originOf(url) === location.origin ? {} : { target: "_blank" };
        link.replaceWith(this.#link("a", { url, link: url }, target, ...link.childNodes));
      }
      for (const place of nodes.querySelectorAll("sup[data-cite]")) {
        const number = Number(place.dataset.cite);
        const citation = answer.citations.find((known) => known.number === number);
        const label = citation ? `${this.#words.source} ${number}: ${placeOf(citation)}` : `${this.#words.source} ${number}`;
        const marker = this.#link("a.marker", citation, { "aria-label": label, "aria-describedby": "card" }, String(number));
        if (!marker.href) marker.tabIndex = 0;
        marker.citation = citation;
        place.replaceChildren(marker);
      }
      for (const wide of nodes.querySelectorAll("pre, math[display=block]")) wide.tabIndex = 0;
      for (const table of nodes.querySelectorAll("table")) wrap(table, "div.scroll", { tabindex: "0", role: "group", "aria-label": this.#words.table });
      for (const pre of nodes.querySelectorAll("pre")) {
        const copy = iconButton("copy", this.#words.copyCode, () => this.#copy(copy, pre.textContent.trimEnd()));
        wrap(pre, "div.code").append(copy);
      }
      return nodes;
    }

    /** Create a link into the book; the page can handle clicks itself (event bythebook:open). */
    #link(what, citation, options, ...children) {
      const href = address(citation?.link) ?? address(citation?.url);
      const link = make(what, { ...options, href, rel: "noopener" }, ...children);
      if (!href) link.setAttribute("role", "button");
      link.addEventListener("click", (event) => {
        if (event.pointerType === "touch" && link.citation && this.#parts.card.hidden) {
          event.preventDefault(); // the first tap shows the preview card
          this.#showCard(link);
          return;
        }
        if (!citation || event.ctrlKey || event.metaKey || event.shiftKey) return;
        const detail = { url: citation.url, link: citation.link, quote: citation.quote ?? "", citation };
        const follow = this.dispatchEvent(new CustomEvent("bythebook:open", { detail, bubbles: true, composed: true, cancelable: true }));
        if (!follow) event.preventDefault();
        if (!this.#isPage && this.#isSmall) this.close();
      });
      return link;
    }

    #nearby({ nearby, related }) {
      const topics = nearby.filter(({ url }) => url !== (related && withoutFragment(related.link)));
      const items = topics.map(({ title, url }) => make("li", this.#link("a.topic", { url, link: url }, { dir: "auto" }, title)));
      return items.length ? make("div.topics", make("h3", this.#words.nearby), make("ul", ...items)) : "";
    }

    #question(answer) {
      return this.#turns[this.#turns.indexOf(answer) - 1] ?? {};
    }

    #fromSelection(answer) {
      const asked = this.#question(answer);
      if (!asked.selection) return "";
      const words = this.#words;
      const whole = make("button.plain", { onclick: () => this.ask(asked.text) }, words.whole);
      return make("p.note", answer.refused ? "" : words.alone, " ", whole);
    }

    #actions(answer) {
      const words = this.#words;
      const vote = (verdict) =>
        iconButton(verdict, words[verdict], () => this.#vote(answer, verdict), { "aria-pressed": String(answer.verdict === verdict) });
      const copy = iconButton("copy", words.copy, () => this.#copy(copy, this.#citedText(answer)));
      const level = answer.refused ? null : make(`span.level.${answer.level}`, words.levels[answer.level] ?? "");
      return make("div.actions", copy, vote("up"), vote("down"), level);
    }

    async #copy(button, text) {
      try {
        await navigator.clipboard.writeText(text);
        button.replaceChildren(icon("done"));
        this.#say(this.#words.copied);
      } catch {
        this.#say(this.#words.broken); // the page may not use the clipboard
      }
    }

    #citedText(answer) {
      if (answer.refused) return this.#refusal(answer);
      const listed = new Map(answer.citations.map((citation) => [citation.source, citation]).reverse());
      const lines = [...listed].reverse().map(([source, citation]) => {
        const link = address(citation.link) ?? address(citation.url);
        const where = link && new URL(link, location.href);
        return [`[${source}]`, placeOf(citation), where].filter(Boolean).join(" ");
      });
      return `${answer.text}\n\n${lines.join("\n")}\n`;
    }

    #trouble({ state, failure }) {
      const words = this.#words;
      if (state === "stopped") return words.stopped;
      if (failure.kind === "broken") return failure.message || words.broken;
      if (failure.kind !== "busy") return words[failure.kind];
      const seconds = Math.ceil((failure.until - Date.now()) / 1000);
      return seconds > 0 ? words.busy.replace("{n}", String(seconds)) : words.ready;
    }

    #troubled(answer) {
      const words = this.#words;
      const text = make("span", this.#trouble(answer));
      const again = make("button.plain", { onclick: () => this.#retry(answer) }, icon("retry"), words.retry);
      const waiting = () => answer.failure?.kind === "busy" && answer.failure.until > Date.now();
      const tick = () => {
        again.disabled = waiting();
        text.textContent = this.#trouble(answer);
        if (waiting() && this.isConnected) setTimeout(tick, 500);
      };
      tick();
      const stopped = answer.state === "stopped";
      return make(stopped ? "div.note" : "div.note.bad", stopped ? null : icon("warn"), text, " ", again);
    }

    // --- feedback ---

    #vote(answer, verdict) {
      answer.verdict = verdict;
      this.#sendVote({ query_id: answer.query, verdict });
      this.#keep();
      const turn = this.#parts.log.children[this.#turns.indexOf(answer)];
      const [, up, down] = turn.querySelectorAll(".actions .icon");
      up.setAttribute("aria-pressed", String(verdict === "up"));
      down.setAttribute("aria-pressed", String(verdict === "down"));
      turn.querySelector(".why")?.remove();
      if (verdict === "up") this.#say(this.#words.thanks);
      else turn.querySelector(".actions").after(this.#why(answer));
      turn.querySelector(".why input")?.focus();
      turn.querySelector(".why")?.scrollIntoView({ block: "nearest" });
    }

    #why(answer) {
      const words = this.#words;
      const reasons = Object.entries(words.reasons).map(([value, label]) =>
        make("label.reason", make("input", { type: "radio", name: "reason", value }), make("span", label)),
      );
      const more = make("textarea", { rows: "2", maxlength: "1000", dir: "auto", "aria-label": words.more, placeholder: words.more });
      const agree = make("input", { type: "checkbox" });
      const form = make("form.why", make("fieldset", make("legend", words.why), ...reasons),
        more,
        make("label.agree", agree, words.agree),
        make("button.plain", { type: "submit" }, words.give),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const reason = form.querySelector("input[name=reason]:checked")?.value;
        const text = agree.checked ? more.value.trim() : ""; // no text without consent
        this.#sendVote({ query_id: answer.query, verdict: "down", reason, ...(text && { text, agreed: true }) });
        form.replaceWith(make("p.note", words.thanks));
        this.#say(words.thanks);
        this.#parts.input.focus();
      });
      return form;
    }

    async #sendVote(body) {
      try {
        await (await this.#post("feedback", body)).text(); // read to its end, it frees the connection
      } catch {
        // feedback is optional: ignore the failure
      }
    }

    // --- preview card of a citation ---

    #pointAt(event) {
      const marker = event.target.closest?.(".marker, .source");
      if (marker?.citation) this.#showCard(marker);
      else if (event.target.closest?.(".card")) clearTimeout(this.#hiding);
    }

    #showCard(marker) {
      clearTimeout(this.#hiding);
      const { card, panel } = this.#parts;
      const { citation } = marker;
      const words = this.#words;
      const percent = Math.round(citation.score * 100);
      const meter = make("span.meter", { "aria-hidden": "true" }, make("i"));
      meter.firstChild.style.width = `${percent}%`;
      card.replaceChildren(
        make("p.where", { dir: "auto" }, placeOf(citation) || words.source),
        make("blockquote", { dir: "auto" }, citation.quote),
        make("p.match", meter, `${words.match} ${percent} %`),
        address(citation.link) ? this.#link("a.plain", citation, { tabindex: "-1" }, words.open) : "",
      );
      card.hidden = false;
      const frame = panel.getBoundingClientRect();
      const at = marker.getBoundingClientRect();
      const { width, height } = card.getBoundingClientRect();
      const above = at.top - frame.top > height + 12;
      card.style.left = `${clamp(at.left + at.width / 2 - width / 2 - frame.left, 12, frame.width - width - 12)}px`;
      card.style.top = `${(above ? at.top - height - 8 : at.bottom + 8) - frame.top}px`;
    }

    #hideCardSoon() {
      clearTimeout(this.#hiding);
      this.#hiding = setTimeout(() => this.#hideCard(), 150);
    }

    #hideCard() {
      clearTimeout(this.#hiding);
      this.#parts.card.hidden = true;
    }
  }

  const citationOf = ({ chunk_text: quote, similarity_score: score, ...rest }) => ({ quote, score, ...rest });

  /** Separate the parts of the question that were not answered from the note on low confidence. */
  function disclaimerOf(text) {
    const [sentence, part] = /^[^“]*: (“.+”)\.?/.exec(text) ?? [""];
    return { part, low: text.slice(sentence.length).trim() };
  }

  /** Return a URL without its text fragment. */
  const withoutFragment = (url) => url.split(":~:")[0].replace(/#$/, "");

  /** Put an element into a new one at its place, which is returned. */
  function wrap(element, what, options = {}) {
    const around = make(what, options);
    element.replaceWith(around);
    around.append(element);
    return around;
  }

  /** Return the blocks of a run without a marker that ends a table or stands alone: the source line
   *  below it has the same number. */
  function withoutLastMarker(blocks) {
    const last = blocks.at(-1);
    const places = last.querySelectorAll("sup[data-cite]");
    const alone = [...places].map(({ textContent }) => textContent).join("") === last.textContent.trim();
    if (places.length && alone) return blocks.slice(0, -1);
    if (places.length === 1 && last.matches(".scroll")) places[0].remove();
    return blocks;
  }

  const clamp = (value, least, most) => Math.max(least, Math.min(value, most));

  // --- embedding by one script tag ---

  customElements.define(NAME, ByTheBook);

  function embed() {
    if (!script || document.querySelector(NAME)) return;
    const element = document.createElement(NAME);
    Object.assign(element.dataset, script.dataset);
    document.body.append(element);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", embed);
  else embed();
})();
