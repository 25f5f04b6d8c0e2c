"""Files of small books."""

from pathlib import Path

CONFIG = """
// @ts-check
import math from 'remark-math';
const config = {
  title: 'It\\'s a site', // url: 'https://wrong.example'
  url: 'https://book.example',
  baseUrl: '/base/',
  i18n: {defaultLocale: 'en', locales: ['en', 'ur']},
  presets: [
    ['classic', /** @type {import('x').Options} */ ({
      docs: {routeBasePath: 'learn', sidebarPath: require.resolve('./sidebars.js')},
      blog: false,
    })],
  ],
};
export default config;
"""


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
