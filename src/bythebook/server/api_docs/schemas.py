"""Readable names for the schemas of the OpenAPI document: contract name, then class name.

Pydantic adds the module to a name that two classes share, so that a new class in one contract
would rename a class of another. Here a name depends only on its own contract.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bythebook.documents import query as query_documents
from bythebook.documents import reply as reply_documents
from bythebook.server.contracts import ask as ask_contract
from bythebook.server.contracts import chat, envelope, openai, plain
from bythebook.server.contracts import query as query_contract

_REF = "#/components/schemas/"
_PREFIXES: dict[ModuleType, str] = {
    query_documents: "Query",
    query_contract: "Query",
    reply_documents: "Agent",
    ask_contract: "Agent",
    envelope: "Envelope",
    plain: "Plain",
    chat: "Chat",
    openai: "OpenAI",
}
# Events of a chat stream in order: name, how often it occurs, and the model of its data.
EVENTS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("session", "once, first", chat.SessionTold),
    ("retrieval", "once, before the first delta", chat.ConfidenceMetrics),
    ("delta", "any number", chat.DeltaTold),
    ("citation", "any number, after the last delta", chat.CitationTold),
    ("done", "once, last, unless the answer failed", chat.DoneTold),
    ("error", "once, last, instead of done", chat.ChatError),
)


def name_of(name: str, home: ModuleType | None = None) -> str:
    """Return the readable name for Pydantic's name of a schema; ``home`` is its likely module."""
    path, _, bare = name.rpartition("__")
    named = path.replace("__", ".")
    homes = [m for m in _PREFIXES if _defines(m, bare) and named in ("", m.__name__)]
    if not homes:
        return name  # shared by all contracts: Level, NearbyTopic, Health …
    if home in homes:
        homes = [home]
    [found] = homes
    prefix = _PREFIXES[found]
    bare = bare.replace("Told", "Event")
    return bare if bare.startswith(prefix) else prefix + bare


def _defines(module: ModuleType, name: str) -> bool:
    return getattr(vars(module).get(name), "__module__", None) == module.__name__


def events() -> list[dict[str, Any]]:
    """Return the events of a stream, each with a reference to the schema of its data."""
    return [
        {"event": event, "occurs": occurs, "data": {"$ref": _REF + name_of(kind.__name__, chat)}}
        for event, occurs, kind in EVENTS
    ]


def renamed(described: dict[str, Any]) -> dict[str, Any]:
    """Return the document with readable names, and with the schemas of a stream's events."""
    schemas = described["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    names = {name: name_of(name) for name in schemas}
    told = models_json_schema(
        [(kind, "serialization") for _, _, kind in EVENTS], ref_template=_REF + "{model}"
    )[1]["$defs"]
    named = _named(told, {name: name_of(name, chat) for name in told}) | _named(schemas, names)
    components = {**described["components"], "schemas": dict(sorted(named.items()))}
    return {**described, "paths": _pointed(described["paths"], names), "components": components}


def _named(schemas: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {
        names[name]: _pointed(schema, names) | {"title": names[name]}
        for name, schema in schemas.items()
    }


def _pointed(tree: Any, names: dict[str, str]) -> Any:
    """Return a copy of the tree with every schema reference renamed."""
    if isinstance(tree, list):
        return [_pointed(value, names) for value in tree]
    if not isinstance(tree, dict):
        return tree
    copy = {key: _pointed(value, names) for key, value in tree.items()}
    target = copy.get("$ref")
    if isinstance(target, str) and target.startswith(_REF):
        copy["$ref"] = _REF + names[target.removeprefix(_REF)]
    return copy
