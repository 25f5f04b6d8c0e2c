"""``/widget.js``: one script for pages of any origin, small on the wire and cached by browsers."""

import gzip
import json
import re

import pytest
from fastapi.testclient import TestClient

from bythebook.server.contracts.chat.threads import ChatFeedbackReason
from bythebook.server.static_files import languages, read_static, widget_script

_LARGEST = 25 * 1024  # bytes on the wire
_FILES = ["/widget.js", "/widget/ur.json"]


def test_compressed_widget_is_at_most_25_kb(client: TestClient) -> None:
    response = client.get("/widget.js", headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert 1024 < int(response.headers["content-length"]) <= _LARGEST
    assert response.text == widget_script()


@pytest.mark.parametrize("name", languages())
def test_compressed_texts_of_a_language_are_at_most_4_kb(name: str) -> None:
    assert len(gzip.compress(read_static(f"translations/{name}.json").encode())) <= 4096


@pytest.mark.parametrize("path", [*_FILES, "/page.css", "/"])
@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br", "gzip"),
        ("br;q=1.0, gzip;q=0.5", "gzip"),
        ("GZIP", "gzip"),
        ("*", "gzip"),
        ("", None),
        ("identity", None),
        ("br", None),
        ("gzip;q=0", None),
        ("gzip; q=0.000, *", None),
    ],
)
def test_content_is_compressed_only_if_the_client_accepts_gzip(
    client: TestClient, path: str, accepted: str, encoding: str | None
) -> None:
    response = client.get(path, headers={"Accept-Encoding": accepted})
    assert response.headers.get("content-encoding") == encoding
    assert "Accept-Encoding" in response.headers["vary"]
    assert response.text == client.get(path, headers={"Accept-Encoding": "identity"}).text


@pytest.mark.parametrize("path", _FILES)
def test_compressed_and_plain_content_have_their_own_etags(client: TestClient, path: str) -> None:
    plain, compressed = (
        client.get(path, headers={"Accept-Encoding": encoding}) for encoding in ("identity", "gzip")
    )
    assert plain.headers["etag"] != compressed.headers["etag"]
    cached = {"If-None-Match": plain.headers["etag"], "Accept-Encoding": "gzip"}
    assert client.get(path, headers=cached).status_code == 200
    cached["Accept-Encoding"] = "identity"
    again = client.get(path, headers=cached)
    assert (again.status_code, again.headers["etag"]) == (304, plain.headers["etag"])
    assert "Accept-Encoding" in again.headers["vary"]


def test_script_needs_nothing_that_a_strict_policy_forbids() -> None:
    script = re.sub(r"(?m)^\s*//.*$", "", widget_script())
    for forbidden in ("eval(", "new Function", "document.write", "<style", "style="):
        assert forbidden not in script
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "").replace("https?", "")


@pytest.mark.parametrize("name", languages())
def test_every_language_has_all_texts(name: str) -> None:
    english, words = (
        json.loads(read_static(f"translations/{language}.json")) for language in ("en", name)
    )
    assert list(words) == list(english)
    assert list(words["reasons"]) == list(english["reasons"]) == list(ChatFeedbackReason)
    assert list(words["levels"]) == ["high", "medium", "low"]
    assert "{n}" in words["busy"]


@pytest.mark.parametrize("path", _FILES)
def test_pages_of_any_origin_can_load_and_cache_it(client: TestClient, path: str) -> None:
    first = client.get(path, headers={"Origin": "https://anybody.example"})
    assert first.status_code == 200
    assert first.headers["access-control-allow-origin"] == "*"
    assert first.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "max-age" in first.headers["cache-control"]
    again = client.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get(path, headers={"If-None-Match": '"other"'})
    assert other.content == first.content
