"""Keys: what is known of them, who holds them, and who does not any more."""

from __future__ import annotations

import ast
import hashlib
import hmac
import inspect
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.config.settings import load_settings
from bythebook.errors import ConfigurationError, DatabaseFailed, InvalidInput
from bythebook.interfaces.access import ApiKey
from bythebook.providers.testing import MemoryKeys
from bythebook.server.middleware import api_keys as module
from bythebook.server.middleware.api_keys import KeyRing, make_key, pepper_of

_PEPPER = b"a pepper for the tests"


class FragileKeys(MemoryKeys):
    """Works until it is told to break, and counts how often it was read."""

    broken = False
    reads = 0

    async def all(self) -> list[ApiKey]:
        self.reads += 1
        if self.broken:
            raise DatabaseFailed("The database did not answer.")
        return await super().all()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_has_256_random_bits_and_a_name() -> None:
    made = {make_key(_PEPPER)[0] for _ in range(100)}
    assert len(made) == 100
    for text in made:
        prefix, key_id, secret = text.split("_", 2)
        assert (prefix, len(key_id), len(secret)) == ("btk", 16, 43)
    text, key = make_key(_PEPPER, origins=["https://book.example"])
    assert text.startswith(f"btp_{key.id}_")


def test_stored_record_does_not_reveal_the_key() -> None:
    text, key = make_key(_PEPPER, label="the reading room")
    secret = text.split("_", 2)[2]
    assert secret not in repr(key)
    assert key.digest == hmac.new(_PEPPER, text.encode(), hashlib.sha256).hexdigest()
    assert key.digest != hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "book.example", "https://book.example/", "https://Book.example", "https://a:443"],
)
def test_a_publishable_key_belongs_to_an_exact_origin(origin: str) -> None:
    with pytest.raises(InvalidInput):
        make_key(_PEPPER, origins=[origin])


async def test_only_the_exact_key_is_accepted() -> None:
    store = MemoryKeys()
    text, key = make_key(_PEPPER)
    await store.add(key)
    ring = KeyRing(store, _PEPPER)
    assert await ring.holder(text) == key
    other = text[:-1] + ("A" if text[-1] != "A" else "B")
    published = text.replace("btk_", "btp_")
    for wrong in (other, published, text + "x", text[:-1], text.upper(), f" {text}", "", "btk_"):
        assert await ring.holder(wrong) is None
    assert await KeyRing(store, b"another pepper").holder(text) is None


@given(st.text())
async def test_any_text_can_be_presented_as_a_key(text: str) -> None:
    assert await KeyRing(MemoryKeys(), _PEPPER).holder(text) is None


def test_digests_are_compared_in_constant_time() -> None:
    """Held by the code: no digest is compared by == anywhere in the module."""
    tree = ast.parse(inspect.getsource(module))
    calls = [
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert "compare_digest" in calls
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq) for op in node.ops):
            assert "digest" not in ast.unparse(node)


async def test_keys_are_cached_between_requests() -> None:
    store, clock = FragileKeys(), Clock()
    text, key = make_key(_PEPPER)
    await store.add(key)
    ring = KeyRing(store, _PEPPER, clock=clock)
    for _ in range(100):
        await ring.holder(text)
        await ring.holder("btk_0000000000000000_" + "x" * 43)
    assert store.reads == 1


async def test_cached_keys_stay_valid_while_the_database_is_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, clock = FragileKeys(), Clock()
    text, key = make_key(_PEPPER)
    await store.add(key)
    ring = KeyRing(store, _PEPPER, clock=clock)
    assert await ring.holder(text)
    store.broken = True
    for _ in range(5):
        clock.now += 10
        assert await ring.holder(text)
    assert len(caplog.records) == 1
    clock.now += 600
    with pytest.raises(DatabaseFailed):
        await ring.holder(text)
    store.broken = False
    clock.now += 1
    assert await ring.holder(text)


async def test_no_key_is_accepted_if_the_keys_were_never_read() -> None:
    store = FragileKeys()
    store.broken = True
    with pytest.raises(DatabaseFailed):
        await KeyRing(store, _PEPPER).holder(make_key(_PEPPER)[0])


async def test_origins_come_from_valid_keys_only() -> None:
    store, clock = MemoryKeys(), Clock()
    _, key = make_key(_PEPPER, origins=["https://book.example"])
    await store.add(key)
    await store.add(replace(key, id="0" * 16, origins=("https://other.example",)))
    ring = KeyRing(store, _PEPPER, clock=clock)
    assert await ring.origins() == {"https://book.example", "https://other.example"}
    await store.revoke(key.id, datetime.now(UTC))
    clock.now += 1
    assert await ring.origins() == {"https://other.example"}


def test_pepper_file_is_created_once_and_private(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path / "home"}, environ={})
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(pepper_of(settings))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file = tmp_path / "home" / "pepper"
    assert set(found) == {file.read_bytes()} and len(found) == 16
    assert len(found[0]) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_pepper_from_the_settings_takes_precedence_and_is_hidden(tmp_path: Path) -> None:
    secret = "sixteen letters or more"
    settings = load_settings({"home": tmp_path}, environ={"BYTHEBOOK_PEPPER": secret})
    assert pepper_of(settings) == secret.encode()
    assert secret not in repr(settings) + settings.model_dump_json() + str(settings)
    assert not (tmp_path / "pepper").exists()


def test_pepper_that_cannot_be_created_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ConfigurationError, match="BYTHEBOOK_PEPPER"):
        pepper_of(load_settings({"home": tmp_path / "home"}, environ={}))
