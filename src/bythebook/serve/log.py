"""Log records in, one line of JSON each out, without secrets.

Every logger of the process writes through the handler that ``configuration`` names, so what a
library logs is redacted like our own lines.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

FIELDS = "fields"  # of a record: what else its line says, as a mapping

_HIDDEN = "[redacted]"
_SENSITIVE = (
    r"(?:proxy-)?authorization|(?:set-)?cookie|password"
    r"|[\w-]{0,80}(?:api[_-]?key|token|secret)"  # so many: the rest of a text is not its name
)
# A secret's name, what stands between it and the value in headers, URLs, JSON or Python, the value.
_NAMED = re.compile(
    rf"""(?ix) (?P<name> \b(?:{_SENSITIVE})\b ) (?P<gap> ["']? \s* [:=,]\s* (?:b?["'])? )
    (?P<value> (?:(?:bearer|basic|digest)\s+)? [^\s"',;&)}}\]]+ (?: ;\s*[^\s"',&)}}\]]+ )* )"""
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_KEYS = re.compile(r"\b(?:(?:btk|btp|sk|pk)[-_]|AIza)[\w-]{8,}")
# A terminal's colour ends with a letter, behind which no word begins: a key would not be seen.
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PASSWORD = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")


def redact(text: str) -> str:
    """The text without what looks like a key, a cookie or a password."""
    text = _COLOUR.sub("", text)
    text = _NAMED.sub(lambda found: f"{found['name']}{found['gap']}{_HIDDEN}", text)
    text = _BEARER.sub(lambda found: f"{found[1]} {_HIDDEN}", text)
    return _PASSWORD.sub(_HIDDEN, _KEYS.sub(_HIDDEN, text))


class JsonFormatter(logging.Formatter):
    """JSON escapes line ends, so that nobody can write a line of their own into the log."""

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
    """For ``logging.config``: every logger to standard error, as JSON."""
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
