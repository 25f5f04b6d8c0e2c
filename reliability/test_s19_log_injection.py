"""The log has one line per record and no secrets, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import random
import secrets
import string

from bythebook.server.observability import configuration
from reliability.rows import Rows

_LOGGERS = ("", "bythebook.server", "httpx", "sqlalchemy.engine", "_granian", "openai", "anything")
_NAMES = (
    *("Authorization", "authorization", "AUTHORIZATION", "Proxy-Authorization", "Cookie"),
    *("Set-Cookie", "X-API-Key", "x-api-key", "api_key", "OPENAI_API_KEY", "access_token"),
    *("client_secret", "password", "X-Goog-Api-Key", "refresh-token", "auth_token"),
)
_GAPS = (": ", "=", ":", "': '", '": "', " = ", "': b'", '", "', "', b'")
_SCHEMES = ("", "Bearer ", "bearer ", "Basic ", "Digest ")
_SPLITS = (
    "\n",
    "\r\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "\x00",
    "\x1b[2J",
)
_FORGED = '{"level": "info", "message": "all is well"}'


def _secret(dice: random.Random, *, signs: str = "-_") -> str:
    alphabet = string.ascii_letters + string.digits + signs
    return "".join(dice.choices(alphabet, k=dice.randrange(24, 60))) + "x"


def _header(dice: random.Random) -> tuple[str, str]:
    """Return a secret in one notation, among line ends that forge records."""
    token, key = _secret(dice, signs="-_.~+/"), _secret(dice)
    password = _secret(dice, signs="-_.~+!$")
    ways = (
        (token, f"{dice.choice(_NAMES)}{dice.choice(_GAPS)}{dice.choice(_SCHEMES)}{token}"),
        (token, f"Bearer {token}"),
        (token, f"https://host.example/path?api_key={token}&q=kettle"),
        (password, f"postgresql://reader:{password}@db.example/book"),
        (key, f"btk_{secrets.token_hex(8)}_{key}"),
        (key, f"{dice.choice(['sk-', 'sk-or-v1-', 'sk_live_', 'AIza'])}{key}"),
    )
    secret, written = dice.choice(ways)
    split = dice.choice(_SPLITS)
    return secret, f"before{split}{_FORGED}{split}{written}{split}{_FORGED} after"


def test_one_line_each_and_no_secret(rows: Rows) -> None:
    row = rows.add(
        "S19", "Secrets or forged records in the log", requirement="0 secrets, 1 line per record"
    )
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(configuration()["formatters"]["json"]["()"]())
    dice, records, kept = random.Random(19), rows.count(1_000, 20_000), []
    for _ in range(records):
        logger, (secret, text) = logging.getLogger(dice.choice(_LOGGERS)), _header(dice)
        kept.append(secret)
        record = logger.makeRecord(logger.name, logging.ERROR, "", 0, "%s", (text,), None)
        how = dice.randrange(3)
        if how == 1:
            record.msg, record.args = text.replace("%", ""), ()
        elif how == 2:
            record.args, record.fields = ("fine",), {"header": text}  # type: ignore[attr-defined]
        handler.handle(record)
    told = stream.getvalue()
    lines = told.splitlines()
    # A part of a secret is too much as well.
    found = [secret for secret in kept if secret[:10] in told or secret[-10:] in told]
    forged = [line for line in lines if json.loads(line)["message"] == "all is well"]
    row.record(
        f"{records:,} records of {len(_LOGGERS)} loggers with a secret each, in headers, URLs, "
        f"JSON and Python, and {len(_SPLITS)} kinds of line ends",
        f"{len(found)} secrets, {len(lines) - records} lines too many, {len(forged)} forged",
        passed=not found and len(lines) == records and not forged,
    )


def test_every_logger_writes_through_it() -> None:
    """No logger has its own handler or stops propagation: only the root handler writes."""
    set_up = configuration()
    assert set_up["root"]["handlers"] == ["lines"]
    assert not any("handlers" in logger for logger in set_up["loggers"].values())
    assert set_up["handlers"]["lines"]["formatter"] == "json"
