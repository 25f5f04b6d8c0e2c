"""Logging as one line of JSON per record, with secrets redacted.

All loggers of the process use the handler from ``configuration``, so records of libraries are
redacted, too.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

FIELDS = "fields"  # attribute of a record: a mapping of additional fields

_HIDDEN = "[redacted]"
_SENSITIVE = (
    r"(?:proxy-)?authorization|(?:set-)?cookie|password"
    r"|[\w-]{0,80}(?:api[_-]?key|token|secret)"  # at most 80: a longer match is text, not a name
)
# Name of a secret, separator as in headers, URLs, JSON or Python, value.
_NAMED = re.compile(
    rf"""(?ix) (?P<name> \b(?:{_SENSITIVE})\b ) (?P<gap> ["']? \s* [:=,]\s* (?:b?["'])? )
    (?P<value> (?:(?:bearer|basic|digest)\s+)? [^\s"',;&)}}\]]+ (?: ;\s*[^\s"',&)}}\]]+ )* )"""
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_KEYS = re.compile(r"\b(?:(?:btk|btp|sk|pk)[-_]|AIza)[\w-]{8,}")
# A terminal colour code ends with a letter, so a key right after it has no word boundary.
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PASSWORD = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")


def redact(text: str) -> str:
    """Replace everything that looks like a key, a cookie or a password."""
    text = _COLOUR.sub("", text)
    text = _NAMED.sub(lambda found: f"{found['name']}{found['gap']}{_HIDDEN}", text)
    text = _BEARER.sub(lambda found: f"{found[1]} {_HIDDEN}", text)
    return _PASSWORD.sub(_HIDDEN, _KEYS.sub(_HIDDEN, text))


class JsonFormatter(logging.Formatter):
    """Format records as JSON, which escapes line ends and so prevents log injection."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        for name, value in getattr(record, FIELDS, {}).items():
            line[name] = redact(value) if isinstance(value, str) else value
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def configuration() -> dict[str, Any]:
    """Return the ``logging.config`` dict: all loggers to standard error, as JSON."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {
            "lines": {
                "class": "logging.StreamHandler",
                "formatter": "json",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["lines"], "level": "WARNING"},
        "loggers": {"bythebook": {"level": "INFO"}, "_granian": {"level": "WARNING"}},
    }
