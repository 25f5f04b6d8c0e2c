"""Providers are chosen by the settings, and what is missing is named with its cure."""

import sys
from pathlib import Path

import pytest

from bythebook.assemble import open_library
from bythebook.errors import ConfigurationError, UnknownProvider
from bythebook.settings import load_settings


def test_a_store_that_nobody_knows_is_named(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "shoebox"}, environ={})
    with pytest.raises(ConfigurationError, match=r"shoebox.*edge or qdrant"):
        open_library(settings, new=True)


def test_a_server_needs_an_address(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path, "store": "qdrant"}, environ={})
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        open_library(settings, new=True)


def test_a_package_that_is_not_installed_comes_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("qdrant_server", "qdrant_nodes"):
        monkeypatch.delitem(sys.modules, f"bythebook.providers.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    settings = load_settings({"home": tmp_path}, environ={"QDRANT_URL": "http://127.0.0.1:6333"})
    with pytest.raises(UnknownProvider, match=r"qdrant_client.*bythebook\[qdrant\]"):
        open_library(settings, new=True)
