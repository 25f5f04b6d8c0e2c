"""The entities, rules and functions of ``bythebook.contracts``, for their page and its test."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from enum import EnumMeta
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import AfterValidator, BaseModel

from bythebook.contracts.fields import EXTENSION, Entity

MODULES: dict[str, ModuleType] = {
    name: import_module(f"bythebook.contracts.{name}")
    for name in ("query", "ask", "envelope", "plain", "chat")
}
_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
}
# Models of ours beside the entities of a data model: of errors, and of extensions.
OURS = {"QueryError", "PlainError", "ChatError", "NumberedCitation", "CitedSentence", "MarkedSpan"}
_RULES = Path(__file__).parent.parent / "tests" / "contracts" / "rules.json"
Field = tuple[str, str, str]  # contract, entity, field


def entities() -> Iterator[tuple[str, type[Entity]]]:
    """Yield each contract's entities."""
    for contract, module in MODULES.items():
        for entity in vars(module).values():
            is_model = isinstance(entity, type) and issubclass(entity, Entity)
            if is_model and entity.__module__ == module.__name__:
                yield contract, entity


def limits() -> dict[Field, dict[str, Any]]:
    """Return the limits of every field that is no extension, as in the JSON schema."""
    found = {}
    for contract, entity in entities():
        for name, schema in entity.model_json_schema().get("properties", {}).items():
            for path, flat in ((name, _flat(schema)), (f"{name}[]", schema.get("items", {}))):
                given = {key: value for key, value in flat.items() if key in _LIMITS}
                if given and not is_extension(entity, name):
                    found[contract, entity.__name__, path] = given
    return found


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    [kind] = [each for each in schema.get("anyOf", [{}]) if each.get("type") != "null"][:1] or [{}]
    return {**kind, **schema}


def rules() -> list[Field]:
    """Return the rules of entities: what their validators say, apart from the limits."""
    found = []
    for contract, entity in entities():
        decorators = entity.__pydantic_decorators__
        validators = {**decorators.field_validators, **decorators.model_validators}
        for name in validators:
            if name in vars(entity):
                texts = inspect.getdoc(getattr(entity, name)) or ""
                found += [(contract, entity.__name__, text) for text in re.split(r";\s+", texts)]
        for name, info in entity.model_fields.items():
            if name in entity.__annotations__ and not is_extension(entity, name):
                found += [
                    (contract, entity.__name__, f"{name}: {validator.__doc__}")
                    for validator in _validators(info.annotation, info.metadata)
                    if validator.__doc__
                ]
    return [(c, e, " ".join(text.rstrip(".").split())) for c, e, text in found]


def _validators(kind: Any, metadata: Iterable[Any] = ()) -> Iterator[Any]:
    for part in (*metadata, *get_args(kind)):
        if isinstance(part, AfterValidator):
            yield part.func
        else:
            yield from _validators(part)


def is_extension(entity: type[BaseModel], name: str) -> bool:
    return EXTENSION in entity.model_fields[name].metadata


# --- the page ---------------------------------------------------------------------------------


def page(described: dict[str, Any]) -> str:
    """Return the page; ``described`` is the OpenAPI document."""
    parts = [_HEAD]
    for contract, module in MODULES.items():
        parts.append(f"## {contract}\n\n{inspect.getdoc(module)}\n")
        constants = [name for name in vars(module) if re.fullmatch(r"[A-Z][A-Z_]+", name)]
        constants.remove("TYPE_CHECKING")
        own = [name for name in constants if isinstance(getattr(module, name), int | float | str)]
        if own:
            listed = ", ".join(f"`{name} = {getattr(module, name)!r}`" for name in own)
            parts.append(f"Constants: {listed}.\n")
        enums = {name: each for name, each in vars(module).items() if isinstance(each, EnumMeta)}
        enums = {name: each for name, each in enums.items() if name not in ("State", "StrEnum")}
        for name, each in enums.items():
            parts.append(f"`{name}`: {', '.join(f'`{member.value}`' for member in each)}.\n")
        for entity in (entity for name, entity in entities() if name == contract):
            parts.append(_section(contract, entity, described))
    return "\n".join(parts)


def _section(contract: str, entity: type[Entity], described: dict[str, Any]) -> str:
    name = entity.__name__
    lines = [f"### {contract}.{name}\n"]
    lines += [f"{inspect.cleandoc(entity.__doc__)}\n"] if entity.__doc__ else []
    lines += ["An extension, not an entity of the data model.\n"] if name in OURS else []
    lines += [
        f"{how}: {', '.join(what)}.\n" for how, what in _users(contract, entity, described) if what
    ]
    lines += ["| field | type | default | limits |", "|---|---|---|---|"]
    given = limits()
    for field, info in entity.model_fields.items():
        [kind, *_] = [
            str(base.__annotations__[field])
            for base in entity.__mro__
            if field in getattr(base, "__annotations__", {})
        ]
        extension = " (extension)" if is_extension(entity, field) else ""
        kind = re.sub(r"^Extension\[(.*)\]$", r"\1", kind).replace("|", "\\|")
        kind = re.sub(r"Annotated\[(\w+),.*\]", r"\1", kind).lstrip("_")
        default = "required" if info.is_required() else f"`{info.get_default()!r}`"
        bounds = given.get((contract, name, field), {})
        said = ", ".join(
            _LIMITS[key].format(value) for key, value in sorted(bounds.items(), reverse=True)
        )
        default = "made" if info.default_factory else default
        lines.append(f"| `{field}`{extension} | `{kind}` | {default} | {said} |")
    tested = json.loads(_RULES.read_text("utf-8"))
    own = [text for of, text, *_ in tested if of == f"{contract}.{name}"]
    lines += (
        ["", "Rules:\n", *(f"- {text[0].upper()}{text[1:]}." for text in own), ""] if own else [""]
    )
    return "\n".join(lines)


def _users(
    contract: str, entity: type[Entity], described: dict[str, Any]
) -> Iterator[tuple[str, list[str]]]:
    """Yield what makes an entity, and what uses it: functions, routes and other entities."""
    name, module = entity.__name__, MODULES[contract]
    word = re.compile(rf"\b{name}\b")
    made, used = [], []
    for function, each in vars(module).items():
        if inspect.isfunction(each) and each.__module__ == module.__name__ and function[0] != "_":
            *given, returned = (*each.__annotations__.values(), "")[: len(each.__annotations__)]
            made += [f"`{function}`"] if word.search(str(returned)) else []
            used += [f"`{function}`"] if any(word.search(str(kind)) for kind in given) else []
    reference = json.dumps(f"#/components/schemas/{entity.model_json_schema()['title']}")
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if reference in json.dumps(operation):
                used.append(f"`{method.upper()} {path}`")
    for other_contract, other in entities():
        fields = other.__annotations__.values()
        if other_contract == contract and any(word.search(str(kind)) for kind in fields):
            used.append(f"`{other.__name__}`")
    yield "Made by", made
    yield "Used by", used


_HEAD = """# Data models

The five data models, each with its entities, their fields, limits and rules. They are the
classes of [`bythebook.contracts`](../../src/bythebook/contracts), which the server, the command
line and Python programs share; the [contracts](contracts.md) page says how they are served. A field
marked as an extension is not part of its data model. Every limit is in a
table of [`test_data_models.py`](../../tests/contracts/test_data_models.py), and every rule is in
[`rules.json`](../../tests/contracts/rules.json), with an accepted and a refused value.

The vector of an embedding model that a data model names has the dimension that it gives; the vector
of another model has that of its model.

With an open book, in Python:

```python
import asyncio

from bythebook.contracts import ask, chat, envelope, plain, query
from bythebook.testing import fake_book  # or bythebook.Book, for a book of your own


async def main() -> None:
    question = "At how many degrees does a kettle boil water?"
    async with await fake_book() as book:
        embedding = await query.embed(book, question)
        context = await query.retrieve(book, query.Query(text=question))
        print(embedding.dimension, context.total_tokens, context.formatted_text)

        results = await ask.semantic_search(book, question, top_k=3)
        print(ask.format_context(results))
        async for state in ask.follow(book, ask.AgentQuery(text=question)):
            print(state)  # RECEIVED, VALIDATING …, and last an AgentResponse or AgentError

        request = envelope.QueryRequest(query=question)
        print(envelope.plan(request).mode, (await envelope.answer(book, request)).status)

        print([found.rank for found in await plain.search(book, plain.Query(query_text=question))])

        found = await chat.search_textbook(book, question)
        print(found.has_sufficient_context, chat.confidence(found).confidence_level)
        said = await chat.answer(book, chat.ChatRequest(message=question, metadata={"user": "u1"}))
        print((await chat.thread(book, str(said.session_id))).metadata)


asyncio.run(main())
```

Within `with open_book("home") as opened`, the same functions run as
`opened.run(lambda book: chat.search_textbook(book, "What is URDF?"))`.
"""
