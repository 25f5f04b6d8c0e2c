"""The documentation is what the code says."""

import re

import pytest
from tools.make_docs import DOCS, PAGES

from tests.support.samples import ROOT

README = ROOT / "README.md"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_from_the_code_is_current(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name](), "run: python tools/make_docs.py"


def test_the_readme_starts_with_the_two_commands() -> None:
    blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert [block.strip() for block in blocks[:2]] == ["sh demo.sh", "sh test.sh"]
    assert (ROOT / "demo.sh").exists()
    assert (ROOT / "test.sh").exists()


def test_every_error_and_setting_is_documented() -> None:
    from bythebook import errors

    page = (DOCS / "errors.md").read_text("utf-8")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert f"`{name}`" in page


def test_the_page_on_models_names_them_all_and_says_what_is_said() -> None:
    from bythebook.config.settings import Embedding, Model
    from bythebook.providers.embeddings.apis import APIS
    from bythebook.providers.http.errors import error_texts
    from bythebook.providers.registry import WRITERS

    page = (ROOT / "docs" / "operators" / "models.md").read_text("utf-8")
    for provider in WRITERS:
        assert f"`{provider}:" in page
    for name in {name for api in APIS.values() for name in api.models if "light" not in name}:
        assert name in page
    for setting in {*Model.model_fields, *Embedding.model_fields} - {"agentic", "cache"}:
        assert setting in page
    for text in error_texts().values():
        parts = [part.strip(" .") for part in re.split(r"\{\w+\}", text.message)]
        assert all(part in page for part in parts), text.message


def test_decisions_are_numbered_and_say_why() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text("utf-8")
        for heading in ("## The question", "## The decision", "## Why"):
            assert heading in text, f"{page.name} lacks {heading}"
