"""Books of our own, built by real site generators: Sphinx and MkDocs."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

HOME = Path(os.environ.get("BYTHEBOOK_SITES", Path.home() / ".cache" / "bythebook" / "sites"))
_IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CODE = 'def fly(kite):\n    if kite.ready:\n        return "up"\n\n# end <&>'
_INDENTED = CODE.replace("\n", "\n   ").replace("\n   \n", "\n\n")

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
_INDEX = """
Kite Book
=========

This book teaches how to fly kites, from the first line to the last landing.

.. toctree::
   :maxdepth: 2
   :caption: Flying

   guide/features
   guide/second
{more}
"""
_FEATURES = rf"""
Features of a kite
==================

.. _lift-label:

Lift & drag
-----------

A kite flies because of *lift*, see [1]_ and :ref:`lift-label`. The law is :math:`F = m a`.

.. math::

   L = \frac{{1}}{{2}} \rho v^2 S C_L

.. note::

   Wind must be steady.

.. admonition:: Keep away from lines

   Power lines kill.

.. code-block:: python
   :caption: fly.py
   :linenos:

   {_INDENTED}

.. code-block:: console

   $ kite --fly
   flying

Terms
~~~~~

Bridle
   The strings that hold the kite.

Sail
   The cloth.

.. list-table:: Winds
   :header-rows: 1

   * - Name
     - Speed
   * - Breeze
     - 5 | 6
   * - Gale
     - 20

.. figure:: kite.png
   :alt: A red kite over a beach

   A kite in the air.

.. topic:: Summary

   Kites need wind.

.. versionadded:: 2.0
   Night flying.

.. py:function:: launch(kite, height=10)

   Launch the kite.

   :param kite: the kite
   :returns: its height

1. first

   - inner a
   - inner b

2. second

   .. code-block:: c

      int main() {{ return 0; }}

.. rubric:: A small heading

Text after the rubric with ``code literal`` and `a link <https://example.org>`_.

.. [1] Wind makes lift.
"""
_SECOND = """
# Second chapter

Written in Markdown.

## Lift & drag

Again a section of this name, with $x^2$.

:::{tip}
Run.
:::

| a | b |
|---|---|
| 1 | 2 |

> A quotation.

## Lift & drag

Twice.[^n]

[^n]: A footnote in Markdown.
"""
_MKDOCS = """
site_name: Kite Book
site_url: https://kites.example/book/
theme: {name: material, features: [content.code.copy, navigation.footer, content.action.edit]}
repo_url: https://kites.example/repo
edit_uri: edit/main/docs/
nav:
  - Home: index.md
  - Flying: [guide/zeta.md, guide/alpha.md]
%(more)s
plugins: [search]
markdown_extensions:
  - admonition
  - footnotes
  - pymdownx.details
  - pymdownx.superfences
  - pymdownx.tabbed: {alternate_style: true}
  - pymdownx.highlight: {linenums: true}
  - pymdownx.arithmatex: {generic: true}
  - pymdownx.tasklist: {custom_checkbox: true}
  - def_list
  - attr_list
  - md_in_html
  - toc: {permalink: true}
"""
_ZETA = rf"""
# Features of a kite

## Lift & drag

A kite flies because of *lift*.[^1] The law is $F = m a$.

$$
L = \frac{{1}}{{2}} \rho v^2 S C_L
$$

!!! note
    Wind must be steady.

!!! danger "Keep away from lines"
    Power lines kill.

??? question "Why?"
    Because of the current.

``` py title="fly.py"
{CODE}
```

=== "Python"

    ``` python
    print("a")
    ```

=== "C"

    ``` c
    puts("a");
    ```

### Terms

Bridle
:   The strings that hold the kite.

- [x] done
- [ ] open

| Name | Speed |
|------|-------|
| Breeze | 5 \| 6 |
| Gale | `20` |

![A red kite over a beach](kite.png){{ width=100 }}

1. first
    - inner a
2. second

[^1]: Wind makes lift.
"""
_ALPHA = "# Second chapter\n\n## Lift & drag\n\nAgain.\n\n## Lift & drag\n\nTwice.\n"


def need_generators() -> None:
    if not (HOME / "bin" / "sphinx-build").exists():
        pytest.skip("needs Sphinx and MkDocs from PyPI: run sh .ci/install")


def sphinx(builder: str, *, theme: str = "furo", pages: Mapping[str, str] | None = None) -> Path:
    """Build the book with Sphinx; ``pages`` are more pages in Markdown."""
    more = dict(pages or {})
    names = "\n".join(f"   {name.removesuffix('.md')}" for name in more)
    files = {
        "conf.py": _CONF,
        "index.rst": _INDEX.format(more=names),
        "guide/features.rst": _FEATURES,
        "guide/second.md": _SECOND,
        **more,
    }
    command = [str(HOME / "bin" / "sphinx-build"), "-q", "-E", "-b", builder, ".", "out"]
    return _build(f"{builder}-{theme}", files, command, {"THEME": theme})


def mkdocs(pages: Mapping[str, str] | None = None) -> Path:
    """Build the book with MkDocs and its Material theme."""
    more = dict(pages or {})
    files = {
        "mkdocs.yml": _MKDOCS % {"more": "".join(f"  - {name}\n" for name in more)},
        "docs/index.md": "# Kite Book\n\nThis book teaches how to fly kites.\n",
        "docs/guide/zeta.md": _ZETA,
        "docs/guide/alpha.md": _ALPHA,
        **{f"docs/{name}": text for name, text in more.items()},
    }
    command = [str(HOME / "bin" / "mkdocs"), "build", "-q", "-d", "out"]
    return _build("mkdocs", files, command, {"NO_MKDOCS_2_WARNING": "1"})


def _build(name: str, files: Mapping[str, str], command: list[str], env: dict[str, str]) -> Path:
    """Build a site once for the same sources, and return the folder of the result."""
    need_generators()
    mark = hashlib.sha256(repr((sorted(files.items()), command, env)).encode()).hexdigest()
    site = HOME / "built" / name
    if (site / "mark").is_file() and (site / "mark").read_text() == mark:
        return site / "out"
    shutil.rmtree(site, ignore_errors=True)
    for place, text in files.items():
        target = site / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.lstrip("\n"), encoding="utf-8")
    for folder in ("guide", "docs/guide"):
        if (site / folder).is_dir():
            (site / folder / "kite.png").write_bytes(_IMAGE)
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
