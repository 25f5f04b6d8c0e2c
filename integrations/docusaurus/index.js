// @ts-check
// Options in; on every page of the site, the one line that embeds the widget. With the option
// markdown, the build also has the book as Markdown, and pages have a button that copies it.

const {execFile} = require('node:child_process');
const path = require('node:path');
const {promisify} = require('node:util');
const {NAME, check, markdownOf, scriptOf} = require('./options');

/** @type {import('./index')} */
function plugin(context, options) {
  const {id, ...own} = options;
  const all = {...context.siteConfig.themeConfig.bythebook, ...own};
  const script = scriptOf(all);
  const markdown = markdownOf(all, context.i18n?.currentLocale ?? 'en');
  return {
    name: NAME,
    getClientModules: () => [path.join(__dirname, 'client.js')],
    // In the head, so that the page need not be drawn first; async, so that it never waits.
    injectHtmlTags: () => ({headTags: [{tagName: 'script', attributes: script}]}),
    ...(markdown && {
      contentLoaded: async ({actions}) => actions.setGlobalData({markdown: markdown.words}),
      postBuild: async ({outDir}) => exportMarkdown(markdown, context, outDir),
    }),
  };
}

/** Write llms.txt, llms-full.txt and the Markdown of every page into the built site. */
async function exportMarkdown({program, arguments: before}, {siteDir, baseUrl}, outDir) {
  const given = [...before, '--markdown', outDir, '--base-url', baseUrl];
  try {
    await promisify(execFile)(program, given, {cwd: siteDir});
  } catch (error) {
    const missing = error.code === 'ENOENT' ? `there is no program ${program}; set markdown.command` : '';
    throw new Error(`${NAME}: the book was not exported as Markdown: ${missing || error.stderr?.trim() || error.message}`);
  }
}

plugin.validateOptions = ({options}) => {
  const {id = 'default', ...own} = options ?? {};
  return {...check(own, 'the plugin'), id};
};

plugin.validateThemeConfig = ({themeConfig}) => {
  check(themeConfig.bythebook ?? {}, 'themeConfig.bythebook');
  return themeConfig;
};

module.exports = plugin;
