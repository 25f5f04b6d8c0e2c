import type {LoadContext, OptionValidationContext, Plugin, ThemeConfigValidationContext} from '@docusaurus/types';

declare namespace plugin {
  /** Options of the plugin, and of `themeConfig.bythebook`; those of the plugin win. */
  interface Options {
    /** Address of your By the Book server; a path, if it is served by the same host as the site. */
    server?: string;
    /** A publishable key (`btp_…`), where the server asks for one. */
    key?: string;
    /** The words on the button and above the chat. */
    title?: string;
    /** The side of the page that the button stands on; right by default. */
    position?: 'left' | 'right';
    /** A colour as CSS writes it; the site's primary colour by default. */
    accent?: string;
    /** auto, the default, follows the site's. */
    theme?: 'auto' | 'light' | 'dark';
    /** Of the widget's own words; the page's by default. */
    language?: string;
    /** Keys that open the chat, or ask about what is selected; `alt+q` by default. */
    shortcut?: string;
    /** Adds the book as Markdown to the build, and a button that copies a page; off by default. */
    markdown?: boolean | MarkdownOptions;
  }

  interface MarkdownOptions {
    /** Folder of the ingested book, relative to the site; `.bythebook` by default. */
    home?: string;
    /** The program, or a list of it and its first arguments; `bythebook` by default. */
    command?: string | string[];
    /** The words on the button, or an object of them by locale. */
    label?: string | Record<string, string>;
    /** The words after copying, or an object of them by locale. */
    copied?: string | Record<string, string>;
  }

  /** For `satisfies`: `themeConfig: {bythebook: {…}} satisfies ThemeConfig`. */
  interface ThemeConfig {
    bythebook?: Options;
  }

  type PluginOptions = Options & {id: string};
  type Given = Options & {id?: string};

  function validateOptions(context: OptionValidationContext<Given, PluginOptions>): PluginOptions;

  function validateThemeConfig<T extends ThemeConfig>(context: ThemeConfigValidationContext<T>): T;
}

declare function plugin(context: LoadContext, options: plugin.PluginOptions): Plugin<undefined>;

export = plugin;
