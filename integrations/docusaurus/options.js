// @ts-check
// What an author wrote in; attributes of the widget's script out, or what is wrong in a sentence.

const NAME = 'docusaurus-plugin-bythebook';

/** What each option may be, and how to say so. */
const OPTIONS = {
  server: [isAddress, 'the address of your By the Book server, such as "https://ask.example.org"'],
  key: [isPublishable, 'a publishable key, "btp_…": bythebook keys create --publishable --origin …'],
  title: [isText, 'the words on the button and above the chat, such as "Ask the book"'],
  position: [isOneOf('left', 'right'), '"left" or "right"'],
  accent: [isColour, 'a colour as CSS writes it, such as "#0a7" or "rebeccapurple"'],
  theme: [isOneOf('auto', 'light', 'dark'), '"auto" (as the site), "light" or "dark"'],
  language: [matches(/^[a-z]{2,3}(-[\w-]+)?$/i), 'a language, such as "en" or "ur"'],
  shortcut: [
    matches(/^((alt|ctrl|meta|shift)\+)+[^\s+]$/i),
    'keys with + between, such as "alt+q" or "ctrl+shift+k"',
  ],
  markdown: [isMarkdown, 'true, false, or an object with home, command, label or copied'],
};

/** What each option of markdown may be. */
const MARKDOWN = {
  home: [isText, 'the folder of the ingested book, such as "../.bythebook"'],
  command: [isCommand, 'the program, such as "bythebook", or a list: ["uv", "run", "bythebook"]'],
  label: [isLabel, 'the words on the button, or an object of them by locale'],
  copied: [isLabel, 'the words after copying, or an object of them by locale'],
};

const WORDS = {
  en: {label: 'Copy page as Markdown', copied: 'Copied', failed: 'Copying failed'},
  ur: {label: 'صفحہ Markdown میں نقل کریں', copied: 'نقل ہو گیا', failed: 'نقل نہیں ہو سکا'},
};

/** The same options, or an Error that names the first that cannot be used and what it should be. */
function check(options, where, valid = OPTIONS) {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(valid, name)) throw mistake(where, unknown(name, valid));
    const [isRight, wanted] = valid[name];
    if (name === 'key' && /^btk_/.test(value)) {
      throw mistake(where, 'key is secret and would be readable on every page; it should be ' + wanted);
    }
    if (!isRight(value)) throw mistake(where, `${name} is ${JSON.stringify(value)}; it should be ${wanted}`);
    if (name === 'markdown' && typeof value === 'object') check(value, `markdown of ${where}`, MARKDOWN);
  }
  return options;
}

function unknown(name, valid) {
  const known = Object.keys(valid);
  const near = known.find((one) => one.startsWith(name.slice(0, 3).toLowerCase()));
  return `there is no option ${name}; ${near ? `did you mean ${near}?` : `use ${known.join(', ')}`}`;
}

/** The attributes of the script that the widget comes in: each option as data-…. */
function scriptOf(options) {
  if (!options.server) throw mistake('the plugin', `server is missing; it should be ${OPTIONS.server[1]}`);
  const {server, theme, markdown, ...rest} = options;
  const attributes = {src: `${server.replace(/\/+$/, '')}/widget.js`, async: true};
  if (theme && theme !== 'auto') rest.theme = theme; // by default the widget looks at the page
  for (const [name, value] of Object.entries(rest)) {
    if (value !== undefined) attributes[`data-${name}`] = value;
  }
  return attributes;
}

/** How to export the book as Markdown, and the words of the button; null if that is off. */
function markdownOf({markdown}, locale) {
  if (!markdown) return null;
  const {home, command = 'bythebook', label, copied} = markdown === true ? {} : markdown;
  const [program, ...before] = [command].flat();
  const words = WORDS[locale.split('-')[0]] ?? WORDS.en;
  return {
    program,
    arguments: [...before, 'export', ...(home ? ['--home', home] : [])],
    words: {
      label: wordsIn(locale, label) ?? words.label,
      copied: wordsIn(locale, copied) ?? words.copied,
      failed: words.failed,
    },
  };
}

function wordsIn(locale, given) {
  return typeof given === 'object' ? given[locale] : given;
}

const mistake = (where, what) => new Error(`${NAME}: in the options of ${where}, ${what}`);

function isText(value) {
  return typeof value === 'string' && value.trim() !== '';
}

function isMarkdown(value) {
  return typeof value === 'boolean' || isRecord(value);
}

function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCommand(value) {
  return isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText));
}

function isLabel(value) {
  return isText(value) || (isRecord(value) && Object.values(value).every(isText));
}

function isAddress(value) {
  if (!isText(value)) return false;
  if (/^\/(?!\/)[^?#]*$/.test(value)) return true; // behind the same host as the site
  try {
    const {protocol, username, search, hash} = new URL(value);
    return /^https?:$/.test(protocol) && !username && !search && !hash;
  } catch {
    return false;
  }
}

function isPublishable(value) {
  return isText(value) && value.startsWith('btp_');
}

function isColour(value) {
  return isText(value) && !/[;{}<>"\\]/.test(value);
}

function isOneOf(...words) {
  return (value) => words.includes(value);
}

function matches(pattern) {
  return (value) => isText(value) && pattern.test(value);
}

module.exports = {NAME, check, markdownOf, scriptOf};
