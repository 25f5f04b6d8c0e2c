"""Read single fields of a JSON body before, or without, its validation by the contract."""

from __future__ import annotations

import json
import uuid


def field_of(body: bytes, name: str) -> object:
    """Return a field of a JSON object; None if the body is not one or lacks the field."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields.get(name) if isinstance(fields, dict) else None


def session_of(body: bytes) -> uuid.UUID | None:
    """Return the ``session_id`` of a body if it is a UUID v4."""
    try:
        session = uuid.UUID(str(field_of(body, "session_id")))
    except ValueError:
        return None
    return session if session.version == 4 else None
