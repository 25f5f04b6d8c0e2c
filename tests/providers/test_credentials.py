"""Addresses and keys of providers, from settings and environment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bythebook.config.settings import Settings, load_settings
from bythebook.providers.http.credentials import (
    Account,
    embedder_account,
    ollama_address,
    writer_account,
)

_EXPORTED = {
    "OPENAI_API_KEY": "sk-openai",
    "OPENROUTER_API_KEY": "sk-router",
    "GOOGLE_API_KEY": "google",
    "COHERE_API_KEY": "cohere",
}


def _settings(environ: dict[str, str] | None = None, **sections: object) -> Settings:
    return load_settings(sections, environ=_EXPORTED if environ is None else environ)


_GOOGLE = "https://generativelanguage.googleapis.com/v1beta"


@pytest.mark.parametrize(
    ("account_of", "provider", "address", "key"),
    [
        (writer_account, "openai", "https://api.openai.com/v1", "sk-openai"),
        (writer_account, "openrouter", "https://openrouter.ai/api/v1", "sk-router"),
        (writer_account, "gemini", f"{_GOOGLE}/openai", "google"),
        (writer_account, "ollama", "http://127.0.0.1:11434/v1", None),
        (embedder_account, "openai", "https://api.openai.com/v1", "sk-openai"),
        (embedder_account, "cohere", "https://api.cohere.com/v2", "cohere"),
        (embedder_account, "gemini", _GOOGLE, "google"),
        (embedder_account, "ollama", "http://127.0.0.1:11434/v1", None),
    ],
)
def test_an_account_has_the_address_and_key_of_its_provider(
    account_of: Callable[..., Account], provider: str, address: str, key: str | None
) -> None:
    account = account_of(provider, "m", _settings())
    assert (account.address, account.usable_key()) == (address, key)


def test_an_exported_key_is_not_sent_to_another_address() -> None:
    elsewhere = _settings(model={"base_url": "http://127.0.0.1:8080/v1"})
    assert writer_account("openai", "m", elsewhere).usable_key() is None
    assert embedder_account("openai", "m", elsewhere).usable_key() == "sk-openai"
    own = _settings(model={"base_url": "http://127.0.0.1:8080/v1", "api_key": "own"})
    assert writer_account("openai", "m", own).usable_key() == "own"
    moved = _settings({**_EXPORTED, "OPENAI_BASE_URL": "https://gateway.example/v1"})
    account = writer_account("openai", "m", moved)
    assert (account.address, account.usable_key()) == ("https://gateway.example/v1", "sk-openai")


def test_precedence_of_two_variables_for_one_key() -> None:
    settings = _settings({"GOOGLE_API_KEY": "a", "GEMINI_API_KEY": "b"})
    assert writer_account("gemini", "m", settings).usable_key() == "b"


def test_keys_are_not_in_representations() -> None:
    keys = [*_EXPORTED.values(), "own-key"]
    settings = _settings(model={"api_key": "own-key"}, embedding={"api_key": "own-key"})
    shown = [repr(settings), str(settings.model_dump()), settings.model_dump_json()]
    shown.append(repr(writer_account("openai", "m", settings)))
    assert not any(key in text.replace("cohere_key", "") for key in keys[:2] for text in shown)
    assert not any("own-key" in text for text in shown)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
        (":9000", "http://127.0.0.1:9000/v1"),
        ("[::]:9000", "http://[::1]:9000/v1"),
        ("box", "http://box:11434/v1"),
        ("http://box", "http://box:80/v1"),
        ("https://box/ollama/", "https://box:443/ollama/v1"),
        ("box:junk", "http://127.0.0.1:11434/v1"),
    ],
)
def test_the_address_of_ollama_follows_ollama_host(host: str, address: str) -> None:
    assert ollama_address(host) == address
