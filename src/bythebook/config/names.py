"""Read ``names.toml``: environment variables of settings, and their former names.

Each use of a former name logs one warning that names the new one.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

_log = logging.getLogger(__name__)


def read_table(name: str) -> dict[str, Any]:
    file = resources.files("bythebook.config").joinpath("names.toml")
    table: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))[name]
    return table


_RENAMED = read_table("renamed")


def rename_settings(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one source under their current names; these win over old ones."""
    settings = dict(source)
    for old, new in _RENAMED["settings"].items():
        section, _, name = old.rpartition(".")
        parent = settings.get(section) if section else settings
        if isinstance(parent, Mapping) and name in parent:
            renamed = _renamed(parent, name, old, new)
            settings = {**settings, section: renamed} if section else renamed
    for name, values in _RENAMED["values"].items():
        if isinstance(old := settings.get(name), str) and old in values:
            _warn(f"value {old!r} of the setting {name}", repr(values[old]))
            settings[name] = values[old]
    return settings


def rename_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the current names of variables; these win over old ones."""
    renamed = dict(environ)
    for old, new in _RENAMED["variables"].items():
        if environ.get(old):
            _warn(f"environment variable {old}", new, both=bool(environ.get(new)))
            renamed[new] = environ.get(new) or environ[old]
    return renamed


def _renamed(parent: Mapping[str, Any], name: str, old: str, new: str) -> dict[str, Any]:
    """Return a section in which the setting ``old``, there called ``name``, is called ``new``."""
    rest = {other: value for other, value in parent.items() if other != name}
    if not new:
        _log.warning("The setting %s has no effect; remove it.", old)
        return rest
    key = new.rpartition(".")[2]
    _warn(f"setting {old}", new, both=key in rest)
    value = parent[name]
    if isinstance(value, Mapping) and isinstance(rest.get(key), Mapping):
        return {**rest, key: {**value, **rest[key]}}
    return {key: value, **rest}


def _warn(what: str, new: str, *, both: bool = False) -> None:
    used = "both are given, and the new one is used" if both else "the old one still works"
    _log.warning("The %s is now called %s; %s.", what, new, used)
