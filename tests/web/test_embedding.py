"""The widget on pages of others: by the Docusaurus plugin, and as docs/authors/widget.md says."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.server.running_server import PROGRAM, free_port, running
from tests.support.samples import ROOT
from tests.web.sample_site import ASKED, BASE, PLUGIN, build_sample, serving
from tests.web.test_page import _FLAGS

pytestmark = pytest.mark.real

_QUESTION = "How do ROS 2 nodes exchange messages?"
_ANSWER = "ROS 2 nodes exchange messages over topics."


def _snippets() -> dict[str, str]:
    """What the documentation tells to put on a page of HTML."""
    documented = (ROOT / "docs" / "authors" / "widget.md").read_text("utf-8")
    blocks = re.findall(r"```html\n(.*?)```", documented, re.DOTALL)
    plain, with_options, mdbook, mkdocs, place = blocks
    assert "theme/head.hbs" in mdbook
    assert "extends" in mkdocs
    return {"plain": plain, "options": with_options.replace("btp_…", ""), "place": place}


@pytest.fixture(scope="module")
def built() -> Path:
    return build_sample()


@pytest.fixture(scope="module")
def site(
    built: Path, sample_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Browser, str]]:
    """A browser for which the name of the book's server leads to this machine, and the site."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's Chromium: sh .ci/install")
    folder, port = tmp_path_factory.mktemp("docusaurus"), free_port()
    asked = f"http://127.0.0.1:{port}"
    command = [PROGRAM, "serve", "--home", str(sample_home), "--port", str(port)]
    (folder / "site").mkdir()
    for name, snippet in _snippets().items():
        body = snippet.replace("https://ask.example.org", f"http://{ASKED}")
        text = f"<!doctype html><html lang=en><title>A page</title><p>A book.</p>{body}</html>"
        (folder / "site" / f"{name}.html").write_text(text, "utf-8")
    with (
        serving(built, folder / "site") as origin,
        running(
            ["env", f"BYTHEBOOK_ORIGINS={origin},http://{ASKED}", *command], asked, folder / "log"
        ),
        sync_playwright() as playwright,
    ):
        there = f"--host-resolver-rules=MAP {ASKED} 127.0.0.1:{port}"
        browser = playwright.chromium.launch(executable_path=chromium, args=[*_FLAGS, there])
        yield browser, origin
        browser.close()


@pytest.fixture
def page(site: tuple[Browser, str]) -> Iterator[Page]:
    """A reader who was never here before."""
    browser, origin = site
    with browser.new_context(base_url=origin, viewport={"width": 1200, "height": 700}) as context:
        yield context.new_page()


def test_the_widget_is_on_every_page(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    assert len(pages) > 15
    for file in pages:
        text = file.read_text("utf-8")
        assert text.count("/widget.js") == 1, file
        assert 'data-title="Ask &quot;Physical AI&quot;"' in text or "data-title='Ask " in text
        assert "data-position=" in text


def test_widget_stays_during_navigation_and_links_to_the_sentence(page: Page) -> None:
    page.goto(f"{BASE}docs/")
    widget = page.locator("by-the-book")
    expect(widget).to_have_count(1)
    page.evaluate("document.querySelector('by-the-book').dataset.same = 'yes'")
    page.get_by_role("link", name="Next").click()  # by Docusaurus' own router
    page.wait_for_url(re.compile("/docs/[a-z]"))
    expect(widget).to_have_attribute("data-same", "yes")
    expect(widget).to_have_count(1)

    widget.get_by_role("button", name='Ask "Physical AI"').click()
    widget.get_by_role("textbox").fill(_QUESTION)
    with page.expect_request("**/chat/stream") as asked:
        widget.get_by_role("textbox").press("Enter")
    told = asked.value.post_data_json
    assert told["page_url"] == page.url.partition("#")[0]  # the one navigated to
    expect(widget.get_by_text(_ANSWER).first).to_be_visible()

    widget.locator("a.source").first.click()
    page.wait_for_url(re.compile("/docs/ros2/nodes-and-topics"))
    assert urlsplit(page.url).netloc.startswith("127.0.0.1")  # not the site's public address
    expect(page.get_by_role("article").get_by_text(_ANSWER).first).to_be_in_viewport()
    expect(widget.get_by_text(_ANSWER).first).to_be_visible()  # the conversation is still there


@pytest.mark.parametrize("name", ["plain", "options"])
def test_a_documented_line_embeds_the_widget_on_a_plain_page(page: Page, name: str) -> None:
    page.goto(f"/{name}.html")
    widget = page.locator("by-the-book")
    widget.get_by_role("button", name="Ask the book").click()
    widget.get_by_role("textbox").fill(_QUESTION)
    widget.get_by_role("textbox").press("Enter")
    expect(widget.get_by_text(_ANSWER).first).to_be_visible()


def test_chat_can_be_placed_within_a_page(page: Page) -> None:
    page.goto("/place.html")
    expect(page.locator("by-the-book")).to_have_count(1)
    expect(page.locator("main").get_by_role("textbox")).to_be_visible()


# --- options --------------------------------------------------------------------------------------


def _in_node(plugin_options: object, theme: object = None) -> dict[str, object]:
    """What the plugin makes of options: the script's attributes, or its complaint."""
    if shutil.which("node") is None:
        pytest.skip("needs node: sh .ci/install")
    program = f"""
      const plugin = require({json.dumps(str(PLUGIN))});
      const themeConfig = {{bythebook: {json.dumps(theme)} ?? undefined}};
      try {{
        const options = plugin.validateOptions({{options: {json.dumps(plugin_options)}}});
        plugin.validateThemeConfig({{themeConfig}});
        const made = plugin({{siteConfig: {{themeConfig}}}}, options);
        console.log(JSON.stringify(made.injectHtmlTags().headTags[0].attributes));
      }} catch (error) {{ console.log(JSON.stringify({{error: error.message}})); }}"""
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    made: dict[str, object] = json.loads(done.stdout)
    return made


def test_plugin_options_take_precedence_over_theme_options() -> None:
    made = _in_node(
        {"server": "https://ask.example/book/", "theme": "auto", "shortcut": "ctrl+shift+k"},
        {"server": "/ask", "title": "Ask", "position": "left", "key": "btp_1", "language": "ur"},
    )
    assert made == {
        "src": "https://ask.example/book/widget.js",
        "async": True,
        "data-title": "Ask",
        "data-position": "left",
        "data-key": "btp_1",
        "data-language": "ur",
        "data-shortcut": "ctrl+shift+k",
    }
    assert _in_node({}, {"server": "/ask"})["src"] == "/ask/widget.js"


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
    ],
)
def test_invalid_option_is_reported_with_its_valid_values(
    options: dict[str, object], complaint: str
) -> None:
    said = str(_in_node(options)["error"])
    assert said.startswith("docusaurus-plugin-bythebook: ")
    assert complaint in said


def test_invalid_theme_option_is_reported(tmp_path: Path) -> None:
    said = str(_in_node({"server": "/ask"}, {"theme": "sepia"})["error"])
    assert "themeConfig.bythebook" in said


def test_package_contains_all_files() -> None:
    package = json.loads((PLUGIN / "package.json").read_text("utf-8"))
    assert all((PLUGIN / name).is_file() for name in package["files"])
    for name in ("index.js", "client.js", "copy.js", "index.d.ts", "options.js"):
        assert name in package["files"]
