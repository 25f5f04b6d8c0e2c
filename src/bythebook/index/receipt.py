"""What an ingest looked at and what came of it, kept in the home.

The next ingest looks the same way first: as long as every look shows what it showed then, and the
book that was made is still served, there is nothing to read. A receipt that is lost, damaged or
of other times costs that saving and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bythebook import book as reader
from bythebook import model
from bythebook.book.files import Act, Look
from bythebook.index.ingest import IngestResult

_NAME = "receipt.json"


@dataclass(frozen=True, slots=True)
class Receipt:
    generation: str  # that the book became
    origin: str  # where it was read, and how
    seen: Mapping[Look, str]
    result: IngestResult

    def holds(self) -> bool:
        """Whether the sources still look as they did."""
        return all(look.shows() == shown for look, shown in self.seen.items())

    @property
    def again(self) -> IngestResult:
        """What an ingest says that found nothing changed."""
        passages = self.result.chunks_created
        return replace(self.result, embedded=0, changed=0, removed=0, unchanged=passages)

    def keep(self, home: Path) -> None:
        """Replace the last one, whole or not at all."""
        document = {
            "reader": _reader(),
            "generation": self.generation,
            "origin": self.origin,
            "seen": [[*_fields(look), shown] for look, shown in self.seen.items()],
            "result": asdict(self.result),
        }
        text = json.dumps({**document, "digest": _digest(document)})
        # Always the same name: what a killed ingest leaves of it, the next one writes over.
        draft = home / f"{_NAME}.new"
        with suppress(OSError):
            home.mkdir(parents=True, exist_ok=True)
            draft.write_text(text, "ascii")
            draft.replace(home / _NAME)


def _fields(look: Look) -> tuple[str, str, str]:
    return look.act.value, look.root, look.path


def find_receipt(home: Path, origin: str) -> Receipt | None:
    """The last one, if it is of a book that was read there, and in the way we would read it."""
    try:
        document = json.loads((home / _NAME).read_text("ascii"))
        if document["reader"] != _reader() or document["origin"] != origin:
            return None
        if document.pop("digest") != _digest(document):  # a disk changed what it says
            return None
        return Receipt(
            generation=document["generation"],
            origin=origin,
            seen={Look(Act(act), root, path): shown for act, root, path, shown in document["seen"]},
            result=_result(document["result"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _result(fields: dict[str, Any]) -> IngestResult:
    texts = {name: tuple(fields[name]) for name in ("errors", "notes", "warnings")}
    return IngestResult(**{**fields, **texts})


@cache
def _reader() -> str:
    """The program that reads, as a digest: another one may make another book of the same files."""
    digest = hashlib.sha256()
    folder = Path(str(reader.__file__)).parent
    for file in (*sorted(folder.glob("*.py")), Path(str(model.__file__))):
        digest.update(file.read_bytes())
    return digest.hexdigest()
