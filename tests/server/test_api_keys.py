"""API keys: what is stored of them, who holds them, and what requests without one get."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from bythebook.access_stores import AccessStores, open_keys
from bythebook.config.settings import load_settings
from bythebook.errors import ConfigurationError, DatabaseFailed, InvalidInput
from bythebook.interfaces.access import ApiKey
from bythebook.providers.testing import MemoryKeys
from bythebook.server.access import KeyRing, make_key, needs_keys, pepper_of
from tests.server.access_fixtures import PAGE, PEPPER, client_of, new_key
from tests.server.server_fixtures import new_key as stored_key
from tests.server.server_fixtures import serving


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
    made = {make_key(PEPPER)[0] for _ in range(100)}
    assert len(made) == 100
    for text in made:
        prefix, key_id, secret = text.split("_", 2)
        assert (prefix, len(key_id), len(secret)) == ("btk", 16, 43)
    text, key = make_key(PEPPER, origins=["https://book.example"])
    assert text.startswith(f"btp_{key.id}_")


def test_stored_record_does_not_reveal_the_key() -> None:
    text, key = make_key(PEPPER, label="the reading room")
    secret = text.split("_", 2)[2]
    assert secret not in repr(key)
    assert key.digest == hmac.new(PEPPER, text.encode(), hashlib.sha256).hexdigest()
    assert key.digest != hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "book.example", "https://book.example/", "https://Book.example", "https://a:443"],
)
def test_a_publishable_key_belongs_to_an_exact_origin(origin: str) -> None:
    with pytest.raises(InvalidInput):
        make_key(PEPPER, origins=[origin])


async def test_only_the_exact_key_is_accepted() -> None:
    store = MemoryKeys()
    text, key = make_key(PEPPER)
    await store.add(key)
    ring = KeyRing(store, PEPPER)
    assert await ring.holder(text) == key
    other = text[:-1] + ("A" if text[-1] != "A" else "B")
    published = text.replace("btk_", "btp_")
    for wrong in (
        other,
        published,
        text + "x",
        text[:-1],
        text.upper(),
        f" {text}",
        "",
        "btk_",
        "é\x00",
    ):
        assert await ring.holder(wrong) is None
    assert await KeyRing(store, b"another pepper").holder(text) is None


async def test_keys_are_cached_between_requests() -> None:
    store, clock = FragileKeys(), Clock()
    text, key = make_key(PEPPER)
    await store.add(key)
    ring = KeyRing(store, PEPPER, clock=clock)
    for _ in range(100):
        await ring.holder(text)
        await ring.holder("btk_0000000000000000_" + "x" * 43)
    assert store.reads == 1


async def test_cached_keys_stay_valid_while_the_database_is_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, clock = FragileKeys(), Clock()
    text, key = make_key(PEPPER)
    await store.add(key)
    ring = KeyRing(store, PEPPER, clock=clock)
    assert await ring.holder(text)
    store.broken = True
    for _ in range(5):
        clock.now += 10
        assert await ring.holder(text)
    assert len(caplog.records) == 1
    clock.now += 600
    for stale in (ring, KeyRing(store, PEPPER)):  # the other one has never read any
        with pytest.raises(DatabaseFailed):
            await stale.holder(text)
    store.broken = False
    clock.now += 1
    assert await ring.holder(text)


async def test_origins_come_from_valid_keys_only() -> None:
    store, clock = MemoryKeys(), Clock()
    _, key = make_key(PEPPER, origins=["https://book.example"])
    await store.add(key)
    await store.add(replace(key, id="0" * 16, origins=("https://other.example",)))
    ring = KeyRing(store, PEPPER, clock=clock)
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
    access = {"rate_limit_store": "redis://:sixteen@h:1/0"}
    environ = {"BYTHEBOOK_PEPPER": secret}
    settings = load_settings({"home": tmp_path, "access": access}, environ=environ)
    assert pepper_of(settings) == secret.encode()
    assert "sixteen" not in repr(settings) + settings.model_dump_json() + str(settings)
    assert not (tmp_path / "pepper").exists()


def test_pepper_that_cannot_be_created_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ConfigurationError, match="BYTHEBOOK_PEPPER"):
        pepper_of(load_settings({"home": tmp_path / "home"}, environ={}))


# --- the key of a request


async def test_request_without_a_key_is_rejected_if_keys_are_required(stores: AccessStores) -> None:
    async with client_of(stores=stores) as client:
        assert (await client.post("/chat/run")).json()["owner"] is None
    async with client_of(stores=stores, needs_keys=True) as client:
        refused = await client.post("/chat/run")
        assert refused.status_code == 401
        assert refused.json()["contract"] == "chat"
        assert refused.headers["www-authenticate"] == "Bearer"
        assert (await client.post("/query")).json()["contract"] == "envelope"
        assert (await client.get("/threads")).status_code == 401
        assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("needed", [True, False])
async def test_the_owner_of_a_request_is_its_key(stores: AccessStores, needed: bool) -> None:
    text, key = await new_key(stores)
    async with client_of(stores=stores, needs_keys=needed) as client:
        ways: list[dict[str, str]] = [
            {"Authorization": f"Bearer {text}"},
            {"authorization": f"bearer  {text} "},
            {"X-API-Key": text},
            {"Authorization": "Basic dXNlcjpwdw==", "X-API-Key": text},
        ]
        for headers in ways:
            response = await client.post("/chat/run", headers=headers)
            assert response.json()["owner"] == key.id


@pytest.mark.parametrize("needed", [True, False])
async def test_invalid_key_is_rejected_even_if_keys_are_optional(
    stores: AccessStores, needed: bool
) -> None:
    text, key = await new_key(stores)
    await stores.keys.revoke(key.id, datetime.now(UTC))
    async with client_of(stores=stores, needs_keys=needed) as client:
        for wrong in (text, make_key(PEPPER)[0], "btk_", "btp_nonsense"):
            response = await client.post("/chat/run", headers={"X-API-Key": wrong})
            assert response.status_code == 401
            assert wrong not in response.text


async def test_foreign_credentials_are_ignored_if_keys_are_optional(stores: AccessStores) -> None:
    async with client_of(stores=stores) as client:
        response = await client.post("/chat/run", headers={"Authorization": "Bearer sk-other"})
        assert response.json()["owner"] is None


async def test_publishable_key_allows_only_post_from_its_origin(stores: AccessStores) -> None:
    text, _ = await new_key(stores, PAGE)
    headers = {"X-API-Key": text, "Origin": PAGE}
    async with client_of(stores=stores, needs_keys=True) as client:
        assert (await client.get("/threads", headers=headers)).status_code == 401
        assert (await client.delete("/threads", headers=headers)).status_code == 401


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, False),
        ({"server": {"host": "::1"}}, False),
        ({"server": {"host": "0.0.0.0"}}, True),
        ({"server": {"host": "192.0.2.1"}}, True),
        ({"access": {"trusted_proxies": ["127.0.0.1/32"]}}, True),
        ({"server": {"host": "0.0.0.0"}, "access": {"keys": "open"}}, False),
        ({"access": {"keys": "required"}}, True),
    ],
)
def test_keys_are_required_if_other_machines_can_reach_the_server(
    flags: dict[str, Any], expected: bool
) -> None:
    assert needs_keys(load_settings(flags, environ={})) is expected


# --- settings


@pytest.mark.parametrize("origin", ["*", "null", "book.example", "https://book.example/docs"])
def test_only_exact_origins_can_be_set(origin: str) -> None:
    from bythebook.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=r"access\.origins"):
        load_settings({"access": {"origins": [origin]}}, environ={})


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    settings = load_settings(
        environ={
            "BYTHEBOOK_ORIGINS": "https://a.example, https://b.example",
            "BYTHEBOOK_TRUSTED_PROXIES": "10.0.0.0/8,::1",
        }
    )
    assert settings.access.origins == ("https://a.example", "https://b.example")
    assert settings.access.trusted_proxies == ("10.0.0.0/8", "::1")


# --- a real server


@pytest.mark.loopback
async def test_revoked_key_is_rejected_within_a_second(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path}, environ={})
    text = await stored_key(settings)
    store = open_keys(settings)
    with serving(tmp_path, workers=2, counts="database") as server:
        async with httpx.AsyncClient(
            base_url=server.url, timeout=120, headers={"X-API-Key": text}
        ) as client:
            assert (await client.post("/chat/run")).status_code == 200
            (key,) = await store.all()
            await store.revoke(key.id, key.created_at)
            await asyncio.sleep(1)
            refused = [(await client.post("/chat/run")).status_code for _ in range(10)]
    await store.close()
    assert refused == [401] * 10
