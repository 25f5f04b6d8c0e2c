// Asks POST /ask and shows the cited answer. Everything from the server becomes text, never markup.

const form = document.querySelector("#ask");
const reply = document.querySelector("#reply");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = { text: form.question.value };
  const selection = form.selection.value.trim();
  if (form.querySelector("details").open && selection) body.selected_text = selection;
  await whileBusy(async () => show(await ask(body)));
});

async function whileBusy(work) {
  button.disabled = true;
  reply.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    reply.replaceChildren(make("p", "failure", error.message));
  } finally {
    button.disabled = false;
    reply.setAttribute("aria-busy", "false");
  }
}

async function ask(body) {
  const response = await fetch("ask", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }).catch(() => {
    throw new Error("The book's server does not answer. Is it still running?");
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.message ?? "Something went wrong. Please try again.");
  return answer;
}

function show(answer) {
  const parts = answer.has_relevant_context ? answered(answer) : refused(answer);
  const took = `${Math.round(answer.total_time_ms)} ms · confidence ${answer.confidence_level}`;
  reply.replaceChildren(...parts, make("p", "meta", took));
}

function answered(answer) {
  const parts = [written(answer.sentences)];
  if (answer.disclaimer) parts.push(make("p", "disclaimer", answer.disclaimer));
  const sources = answer.citations.map((citation, at) => source(citation, answer.sources[at]));
  parts.push(make("h2", "", "Sources"), list("ol", sources));
  return parts;
}

function refused(answer) {
  const parts = [make("p", "refusal", `${answer.answer}.`)];
  if (answer.nearby.length) {
    const topics = answer.nearby.map((topic) => item(topic.title, topic.url));
    parts.push(make("h2", "", "Nearby, the book covers"), list("ul", topics));
  }
  return parts;
}

function written(sentences) {
  const answer = make("div", "answer");
  answer.dir = "auto";
  let paragraph = null;
  for (const { text, citations, lead } of sentences) {
    if (paragraph === null || lead === "\n\n") {
      paragraph = make("p", "");
      answer.append(paragraph);
    } else {
      paragraph.append(lead === "\n" ? document.createElement("br") : " ");
    }
    paragraph.append(code(text) ?? text, ...citations.map(marker));
  }
  return answer;
}

function code(text) {
  const fenced = /^(`{3,}|~{3,})[^\n]*\n([\s\S]*?)\n?[ \t]*\1$/.exec(text);
  return fenced && make("code", "listing", fenced[2]);
}

function marker(number) {
  const link = make("a", "marker", `[${number}]`);
  link.href = `#source-${number}`;
  return link;
}

function source(citation, { chapter, section }) {
  const place = chapter && chapter !== section ? `${chapter} › ${section}` : section;
  const where = `[${citation.number}] ${place}`;
  const entry = item(where, citation.link, citation.quote);
  entry.id = `source-${citation.number}`;
  return entry;
}

function item(title, url, quote) {
  const entry = document.querySelector("#source").content.cloneNode(true).firstElementChild;
  const link = entry.querySelector("a");
  link.textContent = title;
  if (/^(https?:\/\/|\/)/.test(url)) link.href = url;
  const words = entry.querySelector("blockquote");
  if (quote) words.textContent = quote;
  else words.remove();
  return entry;
}

function list(kind, items) {
  const element = make(kind, "");
  element.append(...items);
  return element;
}

function make(kind, name, text = "") {
  const element = document.createElement(kind);
  if (name) element.className = name;
  element.textContent = text;
  return element;
}
