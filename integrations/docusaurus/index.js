// @ts-check
// Options in; on every page of the site, the one line that embeds the widget.

const path = require('node:path');
const {NAME, check, scriptOf} = require('./options');

/** @type {import('./index')} */
function plugin(context, options) {
  const {id, ...own} = options;
  const script = scriptOf({...context.siteConfig.themeConfig.bythebook, ...own});
  return {
    name: NAME,
    getClientModules: () => [path.join(__dirname, 'client.js')],
    // In the head, so that the page need not be drawn first; async, so that it never waits.
    injectHtmlTags: () => ({headTags: [{tagName: 'script', attributes: script}]}),
  };
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
