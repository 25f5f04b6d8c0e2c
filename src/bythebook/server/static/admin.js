// Load the report from the server and show it; ask for an API key if one is required.

const root = new URL(document.body.dataset.root, location.href);
const KEY = "bythebook admin key";
const report = document.querySelector("#report");
const form = document.querySelector("#key-form");
const said = document.querySelector("#said");
const days = document.querySelector("#days");

async function get(path) {
  const key = sessionStorage.getItem(KEY);
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch(new URL(`admin/${path}?days=${days.value}`, root), { headers });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw Object.assign(new Error(told.message ?? "Something went wrong."), { locked: [401, 403].includes(response.status) });
}

async function show() {
  report.setAttribute("aria-busy", "true");
  try {
    const response = await get("report.html");
    report.innerHTML = await response.text();
    form.hidden = true;
    report.querySelector("#export")?.addEventListener("click", save);
  } catch (error) {
    report.replaceChildren();
    form.hidden = !error.locked;
    said.textContent = error.locked && !sessionStorage.getItem(KEY) ? "" : error.message;
    if (!error.locked) report.append(paragraph(error.message));
    sessionStorage.removeItem(KEY);
    form.key.focus();
  } finally {
    report.setAttribute("aria-busy", "false");
  }
}

function paragraph(text) {
  const element = document.createElement("p");
  element.className = "empty";
  element.textContent = text;
  return element;
}

async function save() {
  const response = await get("gaps.csv");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition"))?.[1] ?? "gaps.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, form.key.value.trim());
  show();
});
days.addEventListener("change", show);
show();
