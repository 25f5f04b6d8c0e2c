"""Query log, written in the background so that it never delays or fails an answer.

Rows wait in a bounded queue and are retried if the database fails. Rows that
find the queue full, or are unwritten at shutdown, are dropped and counted.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
import uuid
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bythebook.errors import DatabaseFailed
from bythebook.interfaces.conversations import Asker, LoggedQuery
from bythebook.language.text import well_formed
from bythebook.refusals import Refusal
from bythebook.types import Hit, Question, Reply

if TYPE_CHECKING:
    from bythebook.providers.sql.query_log import SqlQueryLog

_log = logging.getLogger(__name__)

_CAPACITY = 1000
_BATCH = 100
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
# Characters of a question that are kept, as many as ask and query accept. The contract plain limits
# words, not characters: a question can be as long as a request body.
_LONGEST = 2000
_NETWORKS = {4: 24, 6: 48}  # address bits that are kept: they identify a network, not a person


class LoggedRequest:
    """Log entry of one request, from its start to its end; without an asker nothing is logged."""

    def __init__(
        self, question: Question, asker: Asker | None, *, mode: str, log: LogQueue | None
    ) -> None:
        self._question = question
        self._asker = asker
        self._mode = mode
        self._log = log
        self._asked_at = datetime.now(UTC)
        self._began = time.perf_counter()

    def end(self, reply: Reply | None) -> None:
        """Log the end of the request; a reply of None means an error."""
        if self._log is not None and self._asker is not None:
            self._log.put(self._row(self._asker, reply))

    def _row(self, asker: Asker, reply: Reply | None) -> LoggedQuery:
        selection, hits = self._question.selection, reply.evidence.considered if reply else ()
        refusal = reply.outcome if reply and isinstance(reply.outcome, Refusal) else None
        return LoggedQuery(
            id=asker.query or str(uuid.uuid4()),
            session=_uuid(asker.session),
            text=logged_text(self._question.text),
            selection_length=None if selection is None else len(selection),
            mode=self._mode,
            status="error" if reply is None else "refused" if refusal else "success",
            refusal=refusal.type.value if refusal else None,
            passages=len(hits),
            best_score=_best_score(hits, self._mode),
            total_ms=round((time.perf_counter() - self._began) * 1000),
            asked_at=self._asked_at,
            network=_network(asker.address),
        )


def _best_score(hits: Sequence[Hit], mode: str) -> float | None:
    """Return the top score; a selection counts as 1.0, as in the envelope contract's schema."""
    if mode == "selected_text_only" and hits:
        return 1.0
    return max((hit.score for hit in hits), default=None)


def _uuid(session: str | None) -> str | None:
    try:
        return None if session is None else str(uuid.UUID(session))
    except ValueError:
        return None


def logged_text(question: str) -> str:
    """Return the start of a question, as text that every database and log accepts."""
    return well_formed(question[:_LONGEST])


def _network(address: str | None) -> str | None:
    try:
        ip = ipaddress.ip_address(address or "")
    except ValueError:
        return None
    ip = getattr(ip, "ipv4_mapped", None) or ip
    network = ipaddress.ip_network((ip, _NETWORKS[ip.version]), strict=False)
    return str(network.network_address)


class LogQueue:
    """Bounded queue that accepts rows immediately and writes them in the background."""

    def __init__(
        self, log: SqlQueryLog, *, with_text: bool = True, capacity: int = _CAPACITY
    ) -> None:
        self.kept = log
        self.with_text = with_text
        self._capacity = capacity
        self._waiting: deque[LoggedQuery] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()  # set while a flush waits: a failure then ends the retries
        self.dropped = 0
        self.failure: DatabaseFailed | None = None  # of the last write

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def put(self, query: LoggedQuery) -> None:
        if len(self._waiting) >= self._capacity:
            self.dropped += 1
            return
        self._waiting.append(query if self.with_text else replace(query, text=""))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def flush(self) -> None:
        """Wait until all queued rows are written or have been retried once."""
        if self._writing is not None:
            self._hurry.set()
            await asyncio.wait([self._writing])
            self._hurry.clear()

    async def close(self) -> None:
        await self.flush()
        if self._waiting:
            _log.warning(
                "%d queries were not logged: the database did not accept them", len(self._waiting)
            )
            self.dropped += len(self._waiting)
            self._waiting.clear()
        await self.kept.close()

    async def _write_all(self) -> None:
        pause = _FIRST_PAUSE_S
        while self._waiting:
            try:
                await self._write_some()
                pause, self.failure = _FIRST_PAUSE_S, None
            except DatabaseFailed as failure:
                self.failure = failure
                if self._hurry.is_set():
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _write_some(self) -> None:
        batch = [self._waiting[n] for n in range(min(_BATCH, len(self._waiting)))]
        await self.kept.record(batch)
        for _ in batch:
            self._waiting.popleft()
