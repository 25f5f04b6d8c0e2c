"""Books of our own, built by real site generators: Sphinx and MkDocs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

HOME = Path(os.environ.get("BYTHEBOOK_SITES", Path.home() / ".cache" / "bythebook" / "sites"))
BOOKS = Path(__file__).with_name("books")
CODE = 'def fly(kite):\n    if kite.ready:\n        return "up"\n\n# end <&>'  # in both books
MORE = "MORE_PAGES"  # in their tables of contents

_CONF = """
import os
project = "Kite Book"
author = "A. Flyer"
copyright = "A. Flyer"
version = "1"
extensions = ["sphinx.ext.mathjax", "myst_parser"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_theme = os.environ["THEME"]
"""


def need_generators() -> None:
    if not (HOME / "bin" / "sphinx-build").exists():
        pytest.skip("needs Sphinx and MkDocs from PyPI: run sh .ci/install")


def sphinx(builder: str, *, theme: str = "furo", pages: Mapping[str, str] | None = None) -> Path:
    """Build the book with Sphinx; ``pages`` are more pages in Markdown."""
    more = dict(pages or {})
    listed = "\n".join(f"   {name.removesuffix('.md')}" for name in more)
    files = {**more, "conf.py": _CONF}
    command = [str(HOME / "bin" / "sphinx-build"), "-q", "-E", "-b", builder, ".", "out"]
    return _build("kites-sphinx", f"{builder}-{theme}", (listed, files), command, {"THEME": theme})


def mkdocs(pages: Mapping[str, str] | None = None) -> Path:
    """Build the book with MkDocs and its Material theme."""
    more = dict(pages or {})
    listed = "".join(f"  - {name}\n" for name in more)
    files = {f"docs/{name}": text for name, text in more.items()}
    command = [str(HOME / "bin" / "mkdocs"), "build", "-q", "-d", "out"]
    return _build("kites-mkdocs", "mkdocs", (listed, files), command, {"NO_MKDOCS_2_WARNING": "1"})


def _build(
    book: str,
    name: str,
    more: tuple[str, Mapping[str, str]],
    command: list[str],
    env: dict[str, str],
) -> Path:
    """Build a book once with the same further pages, and return the folder of the result."""
    need_generators()
    own = {
        str(file.relative_to(BOOKS / book)): file.read_bytes()
        for file in sorted((BOOKS / book).rglob("*.*"))
    }
    mark = hashlib.sha256(repr((own, more, command, env)).encode()).hexdigest()
    site = HOME / "built" / name
    if (site / "mark").is_file() and (site / "mark").read_text() == mark:
        return site / "out"
    shutil.rmtree(site, ignore_errors=True)
    for place, content in {**own, **{k: v.encode() for k, v in more[1].items()}}.items():
        target = site / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.replace(MORE.encode(), more[0].encode()))
    done = subprocess.run(
        command,
        cwd=site,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=600,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{name} was not built:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    (site / "mark").write_text(mark)
    return site / "out"
