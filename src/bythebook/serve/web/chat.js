// The chat beside the reader: asks POST /ask and shows the cited answer. Everything from the server
// becomes text, never markup.

import { make } from "./dom.js";

export function openChat(column, { root, key }) {
  const reply = make("section", { id: "reply", "aria-live": "polite", "aria-busy": "false" });
  const box = make("input", { id: "question", type: "text", dir: "auto", maxlength: "2000", required: "", "aria-label": "Your question", placeholder: "Ask the book" });
  const button = make("button", { type: "submit" }, "Ask");
  const form = make("form", { id: "ask", autocomplete: "off" }, box, button);
  column.replaceChildren(reply, form);

  async function ask(text) {
    const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const response = await fetch(new URL("ask", root), { method: "POST", headers, body: JSON.stringify({ text }) }).catch(() => {
      throw new Error("The book's server does not answer. Is it still running?");
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.message ?? "Something went wrong. Please try again.");
    return answer;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    reply.setAttribute("aria-busy", "true");
    try {
      reply.replaceChildren(make("p", { class: "question", dir: "auto" }, box.value), ...shown(await ask(box.value)));
    } catch (error) {
      reply.replaceChildren(make("p", { class: "failure" }, error.message));
    } finally {
      button.disabled = false;
      reply.setAttribute("aria-busy", "false");
    }
  });
  document.addEventListener("bythebook:ask", (event) => {
    box.value = event.detail.text;
    form.requestSubmit();
  });
}

function shown(answer) {
  if (!answer.has_relevant_context) {
    const topics = answer.nearby.map((topic) => make("li", {}, link(topic.title, { url: topic.url, link: topic.url, quote: "" })));
    return [make("p", { class: "refusal" }, `${answer.answer}.`), make("ul", {}, ...topics)];
  }
  const written = make("div", { class: "answer", dir: "auto" });
  for (const { text, citations, lead } of answer.sentences) {
    if (!written.lastChild || lead === "\n\n") written.append(make("p"));
    const markers = citations.map((number) => link(`[${number}]`, answer.citations[number - 1], "marker"));
    written.lastChild.append(lead === "\n" ? make("br") : " ", text, ...markers);
  }
  return [written, ...(answer.disclaimer ? [make("p", { class: "disclaimer" }, answer.disclaimer)] : [])];
}

function link(words, citation, name = "") {
  const element = make("a", { class: name, href: /^(https?:\/\/|\/)/.test(citation.link) && citation.link }, words);
  element.addEventListener("click", (event) => {
    const detail = { url: citation.url ?? citation.link, link: citation.link, quote: citation.quote, citation };
    const follow = element.dispatchEvent(new CustomEvent("bythebook:open", { bubbles: true, composed: true, cancelable: true, detail }));
    if (!follow) event.preventDefault();
  });
  return element;
}
