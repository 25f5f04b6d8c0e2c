"""Options of the Docusaurus plugin: what it makes of them, and what it says about invalid ones."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.web.sample_site import PLUGIN

pytestmark = pytest.mark.real


def _made(options: object, theme: object = None, *, locale: str = "en", then: str = "") -> Any:
    """What the plugin makes of its options: hooks and attributes, or its complaint."""
    if shutil.which("node") is None:
        pytest.skip("needs node: sh .ci/install")
    program = f"""
      const plugin = require({json.dumps(str(PLUGIN))});
      const themeConfig = {{bythebook: {json.dumps(theme)} ?? undefined}};
      const context = {{
        siteConfig: {{themeConfig}}, i18n: {{currentLocale: '{locale}'}},
        siteDir: {json.dumps(str(PLUGIN))}, baseUrl: '/book/',
      }};
      const told = {{}};
      (async () => {{
        const options = plugin.validateOptions({{options: {json.dumps(options)}}});
        plugin.validateThemeConfig({{themeConfig}});
        const made = plugin(context, options);
        told.hooks = Object.keys(made);
        told.attributes = made.injectHtmlTags().headTags[0].attributes;
        const actions = {{setGlobalData: (data) => Object.assign(told, data)}};
        await made.contentLoaded?.({{actions}});
        {then}
      }})().catch((error) => {{ told.error = error.message; }})
        .finally(() => console.log(JSON.stringify(told)));"""
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _markdown(value: object, locale: str = "en", then: str = "") -> Any:
    return _made({"server": "/ask", "markdown": value}, locale=locale, then=then)


def test_plugin_options_take_precedence_over_theme_options() -> None:
    made = _made(
        {"server": "https://ask.example/book/", "theme": "auto", "shortcut": "ctrl+shift+k"},
        {"server": "/ask", "title": "Ask", "position": "left", "key": "btp_1", "language": "ur"},
    )
    assert made["attributes"] == {
        "src": "https://ask.example/book/widget.js",
        "async": True,
        "data-title": "Ask",
        "data-position": "left",
        "data-key": "btp_1",
        "data-language": "ur",
        "data-shortcut": "ctrl+shift+k",
    }
    assert _made({}, {"server": "/ask"})["attributes"]["src"] == "/ask/widget.js"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "server is missing; it should be the address"),
        ({"server": "ask.example"}, 'server is "ask.example"; it should be the address'),
        ({"server": "https://u:p@ask.example"}, "it should be the address"),
        ({"server": "//ask.example"}, "it should be the address"),
        ({"servr": "/ask"}, "there is no option servr; did you mean server?"),
        ({"colour": "red"}, "there is no option colour; use server, key"),
        ({"server": "/ask", "key": "btk_1"}, "key is secret"),
        ({"server": "/ask", "position": "top"}, 'it should be "left" or "right"'),
        ({"server": "/ask", "accent": "red;}"}, "a colour as CSS writes it"),
        ({"server": "/ask", "shortcut": "q"}, 'such as "alt+q"'),
        ({"server": "/ask", "title": 7}, "title is 7"),
        ({"server": "/ask", "markdown": "yes"}, "should be true, false, or an object"),
        ({"server": "/ask", "markdown": {"hom": "x"}}, "no option hom; did you mean home?"),
        ({"server": "/ask", "markdown": {"home": ""}}, 'home is ""; it should be the folder'),
        (
            {"server": "/ask", "markdown": {"command": []}},
            "command is []; it should be the program",
        ),
        ({"server": "/ask", "markdown": {"label": {"en": 1}}}, "should be the words on the button"),
    ],
)
def test_invalid_option_is_reported_with_its_valid_values(
    options: dict[str, object], complaint: str
) -> None:
    said = str(_made(options)["error"])
    assert said.startswith("docusaurus-plugin-bythebook: ")
    assert complaint in said


def test_invalid_theme_option_is_reported() -> None:
    assert "themeConfig.bythebook" in _made({"server": "/ask"}, {"theme": "sepia"})["error"]


def test_package_contains_all_files() -> None:
    package = json.loads((PLUGIN / "package.json").read_text("utf-8"))
    assert all((PLUGIN / name).is_file() for name in package["files"])
    assert {"index.js", "client.js", "copy.js", "index.d.ts", "options.js"} <= set(package["files"])


# --- the book as Markdown -------------------------------------------------------------------------


def test_markdown_is_off_unless_configured() -> None:
    for told in (_made({"server": "/ask"}), _markdown(False)):
        assert told["hooks"] == ["name", "getClientModules", "injectHtmlTags"]
        assert "markdown" not in told


def test_words_of_the_button_can_be_translated() -> None:
    told = _markdown(True, "ur")
    assert told["markdown"]["label"] == "صفحہ Markdown میں نقل کریں"
    assert list(told["attributes"]) == ["src", "async"]
    label = {"en": "Copy", "de": "Kopieren"}
    words = {"label": "Kopieren", "copied": "Done", "failed": "Copying failed"}
    assert _markdown({"label": label, "copied": "Done"}, "de")["markdown"] == words


def test_command_gets_home_folder_and_base() -> None:
    show = "console.error(JSON.stringify(process.argv.slice(1))), process.exit(1)"
    options = {"command": ["node", "-e", show, "--"], "home": "../home"}
    said = _markdown(options, then="await made.postBuild({outDir: '/out'});")["error"]
    assert said.startswith("docusaurus-plugin-bythebook: the book was not exported as Markdown: ")
    assert json.loads(said[said.index("[") :]) == [
        *("export", "--home", "../home", "--markdown", "/out", "--base-url", "/book/")
    ]


def test_missing_command_is_named() -> None:
    told = _markdown({"command": "no-such-program"}, then="await made.postBuild({outDir: '/out'});")
    assert "there is no program no-such-program; set markdown.command" in told["error"]
