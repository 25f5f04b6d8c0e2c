"""``/widget.js``: one script for pages of any origin, small and kept by browsers."""

import json
from importlib import resources

import pytest
from fastapi.testclient import TestClient

from bythebook.server.contracts.chat import FeedbackReason
from bythebook.server.widget import languages, widget_script

_LARGEST = 40 * 1024


def test_the_widget_is_small() -> None:
    words = max(len(_file(f"words/{name}.json")) for name in languages() if name != "en")
    assert len(widget_script()) <= _LARGEST
    assert words <= 4096


def test_it_needs_nothing_that_a_strict_policy_forbids() -> None:
    script = widget_script().decode()
    for forbidden in ("eval(", "new Function", "document.write", "<style", "style="):
        assert forbidden not in script
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "").replace("https?", "")


def _file(name: str) -> str:
    return resources.files("bythebook.server").joinpath("static", name).read_text("utf-8")


@pytest.mark.parametrize("name", languages())
def test_every_language_says_everything(name: str) -> None:
    english, words = (json.loads(_file(f"words/{each}.json")) for each in ("en", name))
    assert list(words) == list(english)
    assert list(words["reasons"]) == list(english["reasons"]) == list(FeedbackReason)
    assert list(words["levels"]) == ["high", "medium", "low"]
    assert "{n}" in words["busy"]


@pytest.mark.parametrize("path", ["/widget.js", "/widget/ur.json"])
def test_any_page_may_load_it_and_keep_it(client: TestClient, path: str) -> None:
    first = client.get(path, headers={"Origin": "https://anybody.example"})
    assert first.status_code == 200
    assert first.headers["access-control-allow-origin"] == "*"
    assert first.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "max-age" in first.headers["cache-control"]
    again = client.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get(path, headers={"If-None-Match": '"other"'})
    assert other.content == first.content
