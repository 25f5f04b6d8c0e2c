"""The sample book as Docusaurus builds it, with the widget's plugin, and served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sources import docusaurus
from tests.support.samples import ROOT, SAMPLE_BOOK
from tests.web.browser_fixtures import folder_site

PLUGIN = ROOT / "integrations" / "docusaurus"
ASKED = "ask.physical-ai.example"  # where the site's pages look for the book's server
BASE = "/physical-ai-book/"
NAME = "docusaurus-plugin-bythebook"
THEME = {"title": 'Ask "Physical AI"', "position": "left"}


def build_sample(name: str = "widget", *, more: str = "", **files: str) -> Path:
    """The folder of the built site: all of the book's English pages, without its diagrams.

    ``more`` are further options of the plugin, ``files`` further files of the site.
    """
    config = (SAMPLE_BOOK / "docusaurus.config.js").read_text("utf-8")
    for plain, here in (
        ("  plugins: [", f"  plugins: [['{NAME}', {{server: 'http://{ASKED}'{more}}}],"),
        ("  themeConfig: {", f"  themeConfig: {{bythebook: {json.dumps(THEME)},"),
        ("locales: ['en', 'ur']", "locales: ['en']"),
        ("    mermaid: true,", ""),  # half of the time that a build takes
        ("    '@docusaurus/theme-mermaid',", ""),
    ):
        assert config.count(plain) == 1, plain
        config = config.replace(plain, here)
    sources = {
        ".": SAMPLE_BOOK,
        "docusaurus.config.js": config,
        f"node_modules/{NAME}": PLUGIN,
        **files,
    }
    return docusaurus.build(name, sources) / "build"


@contextmanager
def serving(built: Path, folder: Path) -> Iterator[str]:
    """The origin at which the site stands below its base address."""
    (folder / BASE.strip("/")).symlink_to(built)
    with folder_site(folder) as address:
        yield address
