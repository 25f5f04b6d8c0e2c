"""``bythebook keys …``: manage API keys for HTTP clients."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import echo, print_json, printable
from bythebook.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from bythebook.interfaces.access import ApiKey

app = options.command(help="Create, list and revoke API keys.", no_args_is_help=True)


@app.command("create")
def create(
    home: options.Home = None,
    label: Annotated[str, typer.Option("--label", help="What the key is for.")] = "",
    publishable: Annotated[
        bool, typer.Option("--publishable", help="Key for scripts of web pages; it can only ask.")
    ] = False,
    author: Annotated[
        bool, typer.Option("--author", help="Key that may also read what all readers ask (/admin).")
    ] = False,
    origin: Annotated[
        list[str] | None,
        typer.Option("--origin", help="Origin of such a page: https://book.example; repeatable."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Create a key. It is shown only once."""
    from bythebook.access_stores import open_keys
    from bythebook.server.access import make_key, pepper_of

    if publishable != bool(origin):
        raise InvalidInput(
            "A publishable key needs an origin, and other keys have none.",
            hint="Use --publishable and --origin together.",
        )
    settings = options.load(home=home)
    pepper = pepper_of(settings)
    text, key = make_key(pepper, label=label, origins=origin or (), is_author=author)
    asyncio.run(open_keys(settings).add(key))
    if as_json:
        print_json({"key": text, **_record(key)})
        return
    echo(text)
    echo("Save this key: it is not stored and cannot be shown again.", err=True)


@app.command("list")
def list_keys(home: options.Home = None, as_json: options.Json = False) -> None:
    """List the keys, without their secrets."""
    from bythebook.access_stores import open_keys

    keys = asyncio.run(open_keys(options.load(home=home)).all())
    if as_json:
        print_json([_record(key) for key in keys])
        return
    for key in keys:
        state = "revoked" if key.revoked_at else "active"
        role = " ".join(key.origins) or ("author" if key.is_author else "secret")
        label = " ".join(printable(key.label).split())  # of older versions, which took any text
        echo(f"{key.id}  {key.created_at:%Y-%m-%d}  {state:7}  {role}  {label}".rstrip())
    if not keys:
        echo("There are no keys. Run: bythebook keys create")


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `keys list` shows it.")],
    home: options.Home = None,
    as_json: options.Json = False,
) -> None:
    """Revoke a key; servers reject it within a second."""
    from bythebook.access_stores import open_keys

    store = open_keys(options.load(home=home))
    if not asyncio.run(store.revoke(key_id, datetime.now(UTC))):
        raise NotFound(f"There is no key {key_id!r}.", hint="Run: bythebook keys list")
    if as_json:
        print_json({"revoked": key_id})
    else:
        echo(f"{key_id} is revoked.")


def _record(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "label": key.label,
        "publishable": bool(key.origins),
        "author": key.is_author,
        "origins": list(key.origins),
        "created_at": key.created_at.isoformat(timespec="seconds"),
        "revoked_at": key.revoked_at.isoformat(timespec="seconds") if key.revoked_at else None,
    }
