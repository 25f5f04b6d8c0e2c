// The words of the button and the path of a page in; a button above the page's text that copies
// its Markdown. Nothing is shown on pages that are no docs or have no Markdown file.

import siteConfig from '@generated/docusaurus.config';

const PLACE = '.theme-doc-markdown';
const CLASS = 'bythebook-copy-page';
// The site's own colours, which change with its colour mode.
const COLOURS = {
  '--ifm-button-background-color': 'var(--ifm-background-surface-color)',
  '--ifm-button-border-color': 'var(--ifm-color-emphasis-400)',
  '--ifm-button-color': 'var(--ifm-font-color-base)',
};
let opened = 0; // number of the latest page; earlier ones are no longer shown

export async function showCopyButton(words, pathname) {
  const mine = (opened += 1);
  document.querySelectorAll(`.${CLASS}`).forEach((old) => old.remove());
  if (!document.querySelector(PLACE)) return;
  const file = markdownOf(pathname);
  const exists = await isMarkdown(file);
  const place = document.querySelector(PLACE);
  if (exists && place && mine === opened) place.before(makeButton(words, file));
}

/** The address of a page's Markdown: that of the page without its last slash, and .md. */
function markdownOf(pathname) {
  const isRoot = `${pathname}/`.replace(/\/+$/, '/') === siteConfig.baseUrl;
  return isRoot ? `${siteConfig.baseUrl}index.md` : `${pathname.replace(/\/+$/, '')}.md`;
}

/** Whether the file is there; hosts that answer any address with a page say that it is HTML. */
async function isMarkdown(file) {
  try {
    const response = await fetch(file, {method: 'HEAD'});
    return response.ok && !/html/i.test(response.headers.get('content-type') ?? '');
  } catch {
    return false;
  }
}

function makeButton(words, file) {
  const row = document.createElement('div');
  row.className = `${CLASS} margin-bottom--sm`;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'button button--sm';
  for (const [name, value] of Object.entries(COLOURS)) button.style.setProperty(name, value);
  button.textContent = words.label;
  const status = document.createElement('span');
  status.setAttribute('role', 'status');
  status.className = 'margin-left--sm';
  button.addEventListener('click', async () => {
    status.textContent = '';
    status.textContent = await copy(file).then(
      () => words.copied,
      () => words.failed,
    );
  });
  row.append(button, status);
  return row;
}

async function copy(file) {
  const text = fetch(file).then((response) => {
    if (!response.ok) throw new Error(String(response.status));
    return response.text();
  });
  if (typeof ClipboardItem !== 'function' || !navigator.clipboard?.write) {
    await navigator.clipboard.writeText(await text);
    return;
  }
  // Safari allows the clipboard only within the click itself: it gets a promise of the text.
  const blob = text.then((markdown) => new Blob([markdown], {type: 'text/plain'}));
  await navigator.clipboard.write([new ClipboardItem({'text/plain': blob})]);
}
