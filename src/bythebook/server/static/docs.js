// The API reference: send the request of a form with this tab's API key and show the response.

const root = new URL(document.body.dataset.root, location.href);
const KEY = "bythebook api key";
const keyForm = document.querySelector("#key-form");
const keyState = document.querySelector("#key-state");

function showKey() {
  const needed = document.body.dataset.keys === "needed";
  const without = needed ? "This server needs a key." : "This server needs no key.";
  keyState.textContent = sessionStorage.getItem(KEY) ? "The key is sent with every request of this tab." : without;
}

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const key = keyForm.key.value.trim();
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
  showKey();
});

// Return the URL and the fetch options of the request that a form describes.
function requestOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const input of form.querySelectorAll("input")) {
    const value = input.value.trim();
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    else if (value && input.dataset.in === "query") query.set(input.name, value);
    else if (value && input.dataset.in === "header") headers[input.name] = value;
  }
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const body = form.querySelector("textarea")?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const url = new URL(path.slice(1), root);
  url.search = query;
  return [url, { method: form.dataset.method, headers, body }];
}

function readable(text, type) {
  if (!type.startsWith("application/json")) return text;
  return JSON.stringify(JSON.parse(text), null, 2);
}

async function send(form) {
  const [status, head, reply] = ["status", "head", "reply"].map((name) => form.querySelector(`.${name}`));
  const began = performance.now();
  reply.textContent = head.textContent = "";
  status.textContent = "…";
  const [url, options] = requestOf(form);
  const response = await fetch(url, options);
  head.textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const type = response.headers.get("Content-Type") ?? "";
  const texts = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await texts?.read(); part && !part.done; part = await texts.read()) {
    reply.textContent += part.value;
    reply.hidden = head.hidden = false;
  }
  reply.textContent = readable(reply.textContent, type);
  reply.hidden = !reply.textContent;
  head.hidden = false;
  status.textContent = `${response.status} in ${Math.round(performance.now() - began)} ms`;
}

for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form).catch((error) => {
      form.querySelector(".status").textContent = `The request failed: ${error.message}`;
    });
  });
}

// Open a collapsed section when a link leads to it.
function unfold() {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part instanceof HTMLDetailsElement) part.open = true;
  part?.scrollIntoView();
}

addEventListener("hashchange", unfold);
showKey();
if (location.hash) unfold();
