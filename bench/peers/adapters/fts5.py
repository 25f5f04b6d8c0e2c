"""SQLite FTS5: sections between headings, Porter stems, BM25 with the heading counted twice."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from peers.protocol import LEXICAL, Chunk, Found, Meter, markdown_files, serve

_HEADINGS = tuple("#" * level + " " for level in range(1, 7))
_STOP = (
    "a an and are as at be by did do does for from had has have how i in is it its of on or s that "
    "the their there they this to was were what when where which who whom whose why will with"
)


class Fts5:
    variants = (LEXICAL,)

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        rows = [row for path in markdown_files(docs) for row in _sections(path, docs)]
        self._write(rows, home)

    def open(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(home / "book.db")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS sections "
            "USING fts5(file UNINDEXED, heading, text, tokenize='porter unicode61')"
        )

    def chunks(self) -> list[Chunk]:
        return [Chunk(*row) for row in self._db.execute("SELECT file, text FROM sections")]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        rows = self._db.execute(
            "SELECT file, text, -bm25(sections, 0, 2, 1) FROM sections WHERE sections MATCH ? "
            "ORDER BY bm25(sections, 0, 2, 1) LIMIT ?",
            (_any_of(question), k),
        )
        return [Found(*row) for row in rows]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        self._write([(chunk.file, "", chunk.text) for chunk in chunks], home)

    def _write(self, rows: Sequence[tuple[str, str, str]], home: Path) -> None:
        self.open(home)
        with self._db:
            self._db.execute("DELETE FROM sections")
            self._db.executemany("INSERT INTO sections VALUES (?, ?, ?)", rows)


def _sections(path: Path, docs: Path) -> Iterator[tuple[str, str, str]]:
    name, heading, body, in_code = path.relative_to(docs).as_posix(), "", list[str](), False
    for line in [*path.read_text("utf-8").splitlines(), "# "]:
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        if in_code or not line.startswith(_HEADINGS):
            body.append(line)
            continue
        if heading and any(body):
            yield name, heading, "\n".join(body).strip()
        heading, body = line.lstrip("# "), []


def _any_of(question: str) -> str:
    words = set(re.findall(r"\w+", question.lower())) - set(_STOP.split())
    return " OR ".join(f'"{word}"' for word in sorted(words)) or '""'


if __name__ == "__main__":
    serve(Fts5)
