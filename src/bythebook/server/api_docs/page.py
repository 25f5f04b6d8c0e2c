"""Render the OpenAPI document as the page at ``/docs``: every route, with a form to try it.

Rendered here and not by a third-party script, so that it needs no exception from the pages'
content security policy and no external resources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from bythebook.server.api_docs.examples import SESSION
from bythebook.server.api_docs.fields import default_of, name_of, resolve, type_of
from bythebook.server.contracts.openai.requests import MODEL

Described = dict[str, Any]
_METHODS = ("get", "post", "delete")
_GAP = "\n\n"  # between paragraphs
_PATH_EXAMPLES = {"thread_id": SESSION, "model": MODEL}


def contents(described: Described) -> str:
    """Return the HTML list of contracts and their routes."""
    parts = []
    for tag in described["tags"]:
        routes = "".join(
            f'<li><a href="#{op["operationId"]}"><b class="{method}">{method.upper()}</b> '
            f"{escape(path)}</a></li>"
            for path, method, op in _operations(described, tag["name"])
        )
        parts.append(
            f'<li><a href="#contract-{tag["name"]}">{tag["name"]}</a><ul>{routes}</ul></li>'
        )
    return f'<ul>{"".join(parts)}<li><a href="#schemas">schemas</a></li></ul>'


def reference(described: Described) -> str:
    """Return the HTML of all operations, by contract, and of their schemas."""
    parts = [f'<div class="about">{_prose(described["info"]["description"])}</div>']
    for tag in described["tags"]:
        parts.append(f'<section id="contract-{tag["name"]}"><h2>{tag["name"]}</h2>')
        parts.append(_prose(tag["description"]))
        parts += [
            _operation(described, path, method, op)
            for path, method, op in _operations(described, tag["name"])
        ]
        parts.append("</section>")
    schemas = described["components"]["schemas"]
    parts.append('<section id="schemas"><h2>schemas</h2>')
    parts += [_schema(described, name, schema) for name, schema in schemas.items()]
    return "".join([*parts, "</section>"])


def _operations(described: Described, tag: str) -> Iterator[tuple[str, str, Described]]:
    for path, operations in described["paths"].items():
        for method in _METHODS:
            if tag in operations.get(method, {}).get("tags", ()):
                yield path, method, operations[method]


def _operation(described: Described, path: str, method: str, op: Described) -> str:
    description: str = op.get("description") or op["summary"]
    head = f'<b class="{method}">{method.upper()}</b> <code>{escape(path)}</code>'
    first, _, rest = description.partition(_GAP)
    return (
        f'<details class="operation" id="{op["operationId"]}"><summary>{head} '
        f"<span>{_code(first)}</span></summary>{_prose(rest)}{_key(op)}"
        f"{_parameters(described, op)}{_request(described, op)}{_try(described, path, method, op)}"
        f"<h3>Responses</h3>{''.join(_responses(described, op))}</details>"
    )


def _key(op: Described) -> str:
    if "security" not in op:
        return "<p>Needs no key.</p>"
    return "<p>Needs a key.</p>" if {} not in op["security"] else "<p>Needs no key here.</p>"


def _parameters(described: Described, op: Described) -> str:
    rows = [
        (parameter["name"], parameter["in"], parameter["schema"], parameter.get("description", ""))
        for parameter in op.get("parameters", ())
    ]
    return _field_table(described, "parameter", rows) if rows else ""


def _request(described: Described, op: Described) -> str:
    return _fields(described, _body(described, op)) if "requestBody" in op else ""


def _body(described: Described, op: Described) -> Described:
    return resolve(described, op["requestBody"]["content"]["application/json"]["schema"])


def _fields(described: Described, schema: Described) -> str:
    required = schema.get("required", ())
    rows = [
        (name, "" if name in required else "optional", field, "")
        for name, field in schema.get("properties", {}).items()
    ]
    return _field_table(described, "field", rows)


def _field_table(
    described: Described, kind: str, rows: Sequence[tuple[str, str, Described, str]]
) -> str:
    """Return the table of fields or parameters: name, remark, schema and description of each."""
    cells = [
        (
            f"<code>{escape(name)}</code>" + (f" <small>{remark}</small>" if remark else ""),
            _type(described, schema) + (f"<br>{_code(description)}" if description else ""),
            escape(default_of(schema)),
        )
        for name, remark, schema, description in rows
    ]
    return _table((kind, "type", "default"), cells)


def _try(described: Described, path: str, method: str, op: Described) -> str:
    """Return a form with a field for every parameter of the operation and for its body."""
    inputs = "".join(_input(parameter) for parameter in op.get("parameters", ()))
    body = ""
    if "requestBody" in op:
        [example, *_] = _body(described, op)["examples"]
        # Without the example's session_id: that thread belongs to the first client that used it.
        text = escape(_json({k: v for k, v in example.items() if k != "session_id"}))
        rows = text.count("\n") + 1
        body = f'<label>body <textarea rows="{rows}" spellcheck="false">{text}</textarea></label>'
    return (
        f'<form class="try" data-method="{method.upper()}" data-path="{escape(path)}">'
        f'{inputs}{body}<button type="submit">Send</button>'
        '<p class="status" role="status"></p><pre class="head" tabindex="0" hidden></pre>'
        '<pre class="reply" tabindex="0" hidden></pre></form>'
    )


def _input(parameter: Described) -> str:
    name, value = escape(parameter["name"]), escape(_example(parameter))
    attributes = f'name="{name}" data-in="{parameter["in"]}" value="{value}" spellcheck="false"'
    return f"<label>{name} <input {attributes}></label>"


def _example(parameter: Described) -> str:
    if parameter["in"] == "path":
        return _PATH_EXAMPLES[parameter["name"]]
    default = parameter["schema"].get("default")
    return "" if default is None else str(default)


def _responses(described: Described, op: Described) -> Iterator[str]:
    for status, response in sorted(op["responses"].items()):
        content = response.get("content", {})
        parts = []
        for kind, media in content.items():
            parts.append(f"<p><code>{escape(kind)}</code> {_type(described, media['schema'])}</p>")
            parts += [_event_table(described, media["x-events"])] if "x-events" in media else []
            for name, example in media.get("examples", {}).items():
                value = example["value"]
                shown = value if isinstance(value, str) else _json(value)
                parts.append(f'<p>{escape(name)}</p><pre tabindex="0">{escape(shown)}</pre>')
        if names := ", ".join(f"<code>{name}</code>" for name in response.get("headers", ())):
            parts.append(f"<p>headers: {names}</p>")
        title = f"<b>{status}</b> {_code(response['description'])}"
        yield f"<details><summary>{title}</summary>{''.join(parts)}</details>"


def _event_table(described: Described, events: list[Described]) -> str:
    rows = [
        (f"<code>{event['event']}</code>", event["occurs"], _type(described, event["data"]))
        for event in events
    ]
    return _table(("event", "occurs", "data"), rows)


def _schema(described: Described, name: str, schema: Described) -> str:
    prose = _prose(schema.get("description", ""))
    body = _fields(described, schema) if "properties" in schema else ""
    values = "" if body else f"<p>{_type(described, schema)}</p>"
    return (
        f'<details id="schema-{name}"><summary><code>{name}</code></summary>{prose}{body}{values}'
        "</details>"
    )


# --- helpers --------------------------------------------------------------------------------------


def _type(described: Described, schema: Described) -> str:
    """Return the type as text, with links to the schemas that it names."""
    text = escape(type_of(described, {**schema, "description": None}, lambda name: f"\0{name}\0"))
    linked = re.sub("\0(.*?)\0", r'<a href="#schema-\1">\1</a>', text)
    described_as = "" if name_of(schema) else schema.get("description", "")
    return linked + (f": {_code(described_as)}" if described_as else "")


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th scope=col>{name}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _prose(text: str) -> str:
    return "".join(f"<p>{_code(part)}</p>" for part in text.strip().split(_GAP) if part)


def _code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
