"""``bythebook keys …``: manage API keys for HTTP clients."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from bythebook.interfaces.access import ApiKey

app = typer.Typer(
    help="Make, list and revoke API keys.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def keys() -> None:
    """Create, list and revoke API keys."""


@app.command("create")
def create(
    home: options.Home = None,
    label: Annotated[str, typer.Option("--label", help="What the key is for.")] = "",
    publishable: Annotated[
        bool, typer.Option("--publishable", help="For a page's script: it may only ask.")
    ] = False,
    origin: Annotated[
        list[str] | None,
        typer.Option("--origin", help="Page of a publishable key: https://book.example."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Create a key and show it, only this once."""
    from bythebook.server.middleware.api_keys import make_key, pepper_of
    from bythebook.wiring import open_keys

    if publishable != bool(origin):
        raise InvalidInput(
            "A publishable key belongs to a page, and only such a key does.",
            hint="Use --publishable and --origin together.",
        )
    settings = options.load(home=home)
    text, key = make_key(pepper_of(settings), label=label, origins=origin or ())
    asyncio.run(open_keys(settings).add(key))
    if as_json:
        typer.echo(json.dumps({"key": text, **_shown(key)}, ensure_ascii=False, indent=2))
        return
    typer.echo(text)
    typer.echo("Keep it now: it is not stored and cannot be shown again.", err=True)


@app.command("list")
def list_keys(home: options.Home = None, as_json: options.Json = False) -> None:
    """List the keys, without their secrets."""
    from bythebook.wiring import open_keys

    found = asyncio.run(open_keys(options.load(home=home)).all())
    if as_json:
        typer.echo(json.dumps([_shown(key) for key in found], ensure_ascii=False, indent=2))
        return
    for key in found:
        state = "revoked" if key.revoked_at else "holds"
        pages = " ".join(key.origins) or "secret"
        typer.echo(f"{key.id}  {key.created_at:%Y-%m-%d}  {state:7}  {pages}  {key.label}".rstrip())
    if not found:
        typer.echo("There are no keys. Run: bythebook keys create")


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `keys list` shows it.")],
    home: options.Home = None,
    as_json: options.Json = False,
) -> None:
    """Revoke a key; servers reject it within a second."""
    from bythebook.wiring import open_keys

    store = open_keys(options.load(home=home))
    if not asyncio.run(store.revoke(key_id, datetime.now(UTC))):
        raise NotFound(f"There is no key {key_id!r}.", hint="Run: bythebook keys list")
    typer.echo(json.dumps({"revoked": key_id}) if as_json else f"{key_id} is revoked.")


def _shown(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "label": key.label,
        "publishable": bool(key.origins),
        "origins": list(key.origins),
        "created_at": key.created_at.isoformat(timespec="seconds"),
        "revoked_at": key.revoked_at.isoformat(timespec="seconds") if key.revoked_at else None,
    }
