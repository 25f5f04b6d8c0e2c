// @ts-check
import remarkMath from 'remark-math';
import rehypeKatex from 'rehype-katex';
import {themes as prismThemes} from 'prism-react-renderer';

/** @type {import('@docusaurus/types').Config} */
const config = {
  title: 'Physical AI: From Middleware to Motion',
  tagline: 'A short course in robots that sense, decide and move',
  url: 'https://physical-ai.example',
  baseUrl: '/physical-ai-book/',
  onBrokenLinks: 'throw',
  onBrokenAnchors: 'throw',

  i18n: {
    defaultLocale: 'en',
    locales: ['en', 'ur'],
    localeConfigs: {
      en: {label: 'English', htmlLang: 'en'},
      ur: {label: 'اردو', direction: 'rtl', htmlLang: 'ur'},
    },
  },

  markdown: {
    mermaid: true,
    hooks: {
      onBrokenMarkdownLinks: 'throw',
      onBrokenMarkdownImages: 'throw',
    },
  },

  plugins: [
    [
      '@docusaurus/plugin-content-docs',
      {
        path: 'docs',
        routeBasePath: 'docs',
        sidebarPath: './sidebars.js',
        remarkPlugins: [remarkMath],
        rehypePlugins: [rehypeKatex],
      },
    ],
  ],

  themes: [
    ['@docusaurus/theme-classic', {customCss: ['./src/css/custom.css']}],
    '@docusaurus/theme-mermaid',
  ],

  clientModules: ['./src/clientModules/katex.js'],

  themeConfig: {
    navbar: {
      title: 'Physical AI',
      logo: {alt: 'Physical AI book', src: 'img/logo.svg', href: '/docs'},
      items: [
        {to: '/docs', label: 'Read the book', position: 'left'},
        {type: 'localeDropdown', position: 'right'},
      ],
    },
    footer: {
      style: 'light',
      copyright: 'Physical AI: From Middleware to Motion. A sample textbook.',
    },
    prism: {
      theme: prismThemes.github,
      darkTheme: prismThemes.dracula,
      additionalLanguages: ['bash', 'cpp', 'python', 'yaml', 'markup'],
    },
  },
};

export default config;
