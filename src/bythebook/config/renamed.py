"""Accept settings under former names. Each use logs one warning that names the new one.

The tables hold the renames of one release; empty them in the next.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

# (section, old name) and the new name; "" is the top level, None: the setting had no effect.
SETTINGS: Mapping[tuple[str, str], str | None] = {
    ("", "door"): "access",
    ("", "spare"): "index_fallback",
    ("access", "counts"): "rate_limit_store",
    ("limits", "floor"): "min_score",
    ("model", "first_token_s"): "first_token_timeout_s",
    ("model", "gap_s"): "idle_timeout_s",
    ("embedding", "question_s"): "query_timeout_s",
    ("embedding", "at_once"): "concurrency",
    ("collection", "dimension"): None,
}
# (setting of the top level, old value) and the new value.
VALUES: Mapping[tuple[str, str], str] = {
    ("preset", "book"): "query",
    ("preset", "agent"): "ask",
    ("index_fallback", "words"): "keyword",
}
VARIABLES: Mapping[str, str] = {
    "BYTHEBOOK_FLOOR": "BYTHEBOOK_MIN_SCORE",
    "BYTHEBOOK_COUNTS": "BYTHEBOOK_RATE_LIMIT_STORE",
}


def rename_settings(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one source under their current names; these win over old ones."""
    settings = dict(source)
    for (section, old), new in SETTINGS.items():
        parent = settings.get(section) if section else settings
        if not isinstance(parent, Mapping) or old not in parent:
            continue
        renamed = _renamed(parent, old, new, prefix=f"{section}." if section else "")
        settings = {**settings, section: renamed} if section else renamed
    for (name, old), value in VALUES.items():
        if settings.get(name) == old:
            _warn(f"value {old!r} of the setting {name}", repr(value))
            settings[name] = value
    return settings


def rename_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the current names of variables; these win over old ones."""
    renamed = dict(environ)
    for old, new in VARIABLES.items():
        if value := environ.get(old):
            both = bool(environ.get(new))
            _warn(f"environment variable {old}", new, both=both)
            renamed[new] = environ[new] if both else value
    return renamed


def _renamed(
    parent: Mapping[str, Any], old: str, new: str | None, *, prefix: str
) -> dict[str, Any]:
    rest = {name: value for name, value in parent.items() if name != old}
    if new is None:
        _log.warning("The setting %s%s has no effect; remove it.", prefix, old)
        return rest
    _warn(f"setting {prefix}{old}", f"{prefix}{new}", both=new in rest)
    value = parent[old]
    if isinstance(value, Mapping) and isinstance(rest.get(new), Mapping):
        return {**rest, new: {**value, **rest[new]}}
    return {new: value, **rest}


def _warn(what: str, new: str, *, both: bool = False) -> None:
    ending = (
        "both are given, and the new one is used"
        if both
        else "the old name works in this release only"
    )
    _log.warning("The %s is now called %s; %s.", what, new, ending)
