"""Pages copied as Markdown: on the built-in page, and on a site that Docusaurus builds."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from bythebook.documents.markdown import files
from bythebook.documents.markdown.files import broken_links, links_of
from tests.server.running_server import PROGRAM
from tests.sources import docusaurus
from tests.web.browser_fixtures import book_server, open_browser
from tests.web.sample_site import BASE, PLUGIN, build_sample, serving

pytestmark = pytest.mark.real

_PAGE = "physical-ai-book/docs/ros2/nodes-and-topics"
_URDU = "physical-ai-book/ur/docs/ros2/nodes-and-topics"
_LABEL = "Copy page as Markdown"
_CLIPBOARD = "navigator.clipboard.readText()"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def _context(browser: Browser, origin: str) -> BrowserContext:
    context = browser.new_context(base_url=origin, viewport={"width": 1200, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    return context


# --- the built-in page ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(sample_home: Path) -> Iterator[str]:
    with book_server(sample_home, origins="") as address:
        yield address


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    with _context(browser, server) as context:
        yield context.new_page()


def test_button_copies_the_page_as_markdown(page: Page) -> None:
    page.goto(f"/read/{_PAGE}")
    button = page.get_by_role("button", name=_LABEL)
    expect(button).to_have_count(1)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("article").get_by_role("status")).to_have_text("Copied")
    copied = page.evaluate(_CLIPBOARD)
    assert copied == page.request.get(f"/{_PAGE}.md").text()
    assert copied.startswith("# Nodes and topics\n\nSource: https://physical-ai.example/")


def test_button_is_in_the_language_of_the_page(page: Page) -> None:
    page.goto(f"/read/{_URDU}")
    page.get_by_role("button", name="صفحہ Markdown میں نقل کریں").click()
    expect(page.locator("article").get_by_role("status")).not_to_be_empty()
    assert page.evaluate(_CLIPBOARD).startswith("# نوڈز اور ٹاپکس\n")


def test_failure_is_said_next_to_the_button(page: Page) -> None:
    page.goto(f"/read/{_PAGE}")
    page.route("**/*.md", lambda route: route.fulfill(status=503, body="{}"))
    page.get_by_role("button", name=_LABEL).click()
    expect(page.locator("article").get_by_role("status")).to_have_text(
        "Something went wrong. Try again."
    )


def test_cover_has_no_button(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Start reading")).to_be_visible()
    expect(page.get_by_role("button", name=_LABEL)).to_have_count(0)


# --- a site of Docusaurus -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(sample_home: Path) -> Path:
    """The site, with the Markdown that the plugin's command wrote after the build."""
    # A site that was built by other code is built again.
    sources = sorted(Path(files.__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYTHEBOOK_HOME", str(sample_home))
        patch.setenv("PATH", f"{Path(PROGRAM).parent}:{os.environ['PATH']}")
        return build_sample("markdown", more=", markdown: true", **{"exporter.txt": digest})


@pytest.fixture(scope="module")
def origin(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(built, tmp_path_factory.mktemp("site")) as address:
        yield address


@pytest.fixture
def docs(browser: Browser, origin: str) -> Iterator[Page]:
    with _context(browser, origin) as context:
        yield context.new_page()


def test_build_has_the_markdown_of_every_page(built: Path) -> None:
    assert broken_links(built, base_url=BASE) == []
    targets = list(links_of((built / "llms.txt").read_text("utf-8")))
    assert len(targets) == 20
    assert f"https://physical-ai.example{BASE}docs/ros2/nodes-and-topics.md" in targets
    whole = (built / "llms-full.txt").read_text("utf-8")
    paths = docusaurus.pages(built.parent)  # of docs; others have no Markdown
    assert len(paths) > 15
    for path in paths:
        text = (built / f"{path.removeprefix(BASE).strip('/')}.md").read_text("utf-8")
        assert text.startswith("# ")
        assert text in whole


def test_button_of_a_site_copies_the_page_that_is_open(docs: Page, built: Path) -> None:
    docs.goto(f"{BASE}docs/ros2/nodes-and-topics")
    button = docs.get_by_role("button", name=_LABEL)
    for _ in range(2):
        expect(button).to_have_count(1)
        button.focus()
        docs.keyboard.press("Enter")
        expect(docs.locator(".bythebook-copy-page").get_by_role("status")).to_have_text("Copied")
        name = docs.evaluate("location.pathname").removeprefix(BASE).strip("/")
        assert docs.evaluate(_CLIPBOARD) == (built / f"{name}.md").read_text("utf-8")
        before = docs.url
        docs.locator("a.pagination-nav__link--next").click()  # by Docusaurus' own router
        docs.wait_for_url(lambda url, before=before: url != before)
    expect(button).to_have_count(1)


@pytest.mark.parametrize("answer", ["404", "a page"])
def test_no_button_where_the_file_is_missing(docs: Page, answer: str) -> None:
    found = {"status": 200, "content_type": "text/html"} if answer == "a page" else {"status": 404}
    docs.route("**/*.md", lambda route: route.fulfill(**found))  # type: ignore[arg-type]
    with docs.expect_response("**/*.md"):
        docs.goto(f"{BASE}docs/ros2/nodes-and-topics")
    docs.wait_for_load_state("networkidle")
    expect(docs.get_by_role("button", name=_LABEL)).to_have_count(0)


def test_button_is_readable_in_both_colour_modes(docs: Page) -> None:
    docs.goto(f"{BASE}docs/ros2/nodes-and-topics")
    button = docs.get_by_role("button", name=_LABEL)
    grounds = set()
    for theme in ("light", "dark"):
        docs.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        docs.wait_for_timeout(600)  # the transition of the theme
        ground, ink = button.evaluate(
            "(it) => [getComputedStyle(it).backgroundColor, getComputedStyle(it).color]"
        )
        grounds.add(ground)
        lighter, darker = sorted((_luminance(ground), _luminance(ink)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5
    assert len(grounds) == 2


def _luminance(colour: str) -> float:
    """The relative luminance of an opaque ``rgb(…)``, as WCAG defines it."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- options of the plugin ------------------------------------------------------------------------


def _in_node(markdown: object, locale: str = "en", then: str = "") -> dict[str, object]:
    """What the plugin makes of the option: ``made``, its hooks, or its complaint."""
    if shutil.which("node") is None:
        pytest.skip("needs node: sh .ci/install")
    given = {"server": "/ask"} | ({} if markdown is None else {"markdown": markdown})
    program = f"""
      const plugin = require({json.dumps(str(PLUGIN))});
      const given = {json.dumps(given)};
      const context = {{
        siteConfig: {{themeConfig: {{}}}}, i18n: {{currentLocale: '{locale}'}},
        siteDir: {json.dumps(str(PLUGIN))}, baseUrl: '/book/',
      }};
      const told = {{}};
      (async () => {{
        const made = plugin(context, plugin.validateOptions({{options: given}}));
        told.hooks = Object.keys(made);
        told.attributes = Object.keys(made.injectHtmlTags().headTags[0].attributes);
        const actions = {{setGlobalData: (data) => Object.assign(told, data)}};
        await made.contentLoaded?.({{actions}});
        {then}
      }})().catch((error) => {{ told.error = error.message; }})
        .finally(() => console.log(JSON.stringify(told)));"""
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    told: dict[str, object] = json.loads(done.stdout)
    return told


def test_markdown_is_off_unless_configured() -> None:
    for value in (None, False):
        told = _in_node(value)
        assert told["hooks"] == ["name", "getClientModules", "injectHtmlTags"]
        assert "markdown" not in told


def test_words_of_the_button_can_be_translated() -> None:
    told = _in_node(True, "ur")
    assert told["markdown"]["label"] == "صفحہ Markdown میں نقل کریں"  # type: ignore[index]
    assert told["attributes"] == ["src", "async"]
    label = {"en": "Copy", "de": "Kopieren"}
    words = {"label": "Kopieren", "copied": "Done", "failed": "Copying failed"}
    assert _in_node({"label": label, "copied": "Done"}, "de")["markdown"] == words


def test_command_gets_home_folder_and_base() -> None:
    show = "console.error(JSON.stringify(process.argv.slice(1))), process.exit(1)"
    options = {"command": ["node", "-e", show, "--"], "home": "../home"}
    told = _in_node(options, then="await made.postBuild({outDir: '/out'});")
    said = str(told["error"])
    assert said.startswith("docusaurus-plugin-bythebook: the book was not exported as Markdown: ")
    assert json.loads(said[said.index("[") :]) == [
        *("export", "--home", "../home", "--markdown", "/out", "--base-url", "/book/")
    ]


def test_missing_command_is_named() -> None:
    told = _in_node({"command": "no-such-program"}, then="await made.postBuild({outDir: '/out'});")
    assert "there is no program no-such-program; set markdown.command" in str(told["error"])


@pytest.mark.parametrize(
    ("markdown", "complaint"),
    [
        ("yes", 'markdown is "yes"; it should be true, false, or an object'),
        ({"hom": "x"}, "there is no option hom; did you mean home?"),
        ({"home": ""}, 'home is ""; it should be the folder'),
        ({"command": []}, "command is []; it should be the program"),
        ({"label": {"en": 1}}, "it should be the words on the button"),
    ],
)
def test_invalid_markdown_option_is_reported(markdown: object, complaint: str) -> None:
    said = str(_in_node(markdown)["error"])
    assert re.match(
        "docusaurus-plugin-bythebook: in the options of (markdown of )?the plugin", said
    )
    assert complaint in said
