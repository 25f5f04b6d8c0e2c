"""Every citation leads to a passage of the same request."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

from tests.support.samples import evidence

from bythebook.answering.citations import Citations
from bythebook.grounding.verifier import Supported, check
from bythebook.types import Citation, Evidence
from reliability.rows import Rows

_BOOK = (
    "A kite flies because the wind pushes it upwards. Its tail keeps it steady in gusts.",
    "A kettle boils water at 100 degrees Celsius. It switches itself off afterwards.",
    "A lamp of 40 watts lights a room. It lasts for 1000 hours.",
)
_CLAIMS = (
    "A kite flies because the wind pushes it upwards.",
    "A kettle boils water at 100 degrees Celsius.",
    "A lamp of 40 watts lights a room.",
    "Its tail keeps it steady in gusts.",
    "A kettle boils water at 12 degrees Celsius.",
    "Kites were invented by Napoleon.",
)
_FORGED = (
    *(" [1]", " [2]", " [3]", " [99]", " [0]", " [-1]", " [1](http://evil.example)", " [^1]"),
    *(" 【1†source】", " [１]", " [१]", " [①]", "[2, 7]", "[1][1][1]", " [1-3]", " (1)", " [[1]]"),
    *(" [1]: http://evil.example", " <sup>1</sup>", " [source](//evil.example)", " [a1]", " [1 ]"),
    *(" https://evil.example/1", " evil.example/x", " <a href=http://evil.example>[1]</a>", ""),
    *(" ![1](http://evil.example/p.png)", " [1]{.evil}", " \u202e[1]", " [\u200b1]", " ［1］"),
)
_EVIL = "evil.example"


async def _pieces(text: str, dice: random.Random) -> AsyncIterator[str]:
    while text:
        cut = dice.randrange(1, 20)
        yield text[:cut]
        text = text[cut:]


async def _spoofed(text: str, found: Evidence, dice: random.Random) -> tuple[list[str], int]:
    """Return what is wrong with the shown text, and the number of shown sentences."""
    known = {hit.passage.id: hit.passage for hit in found.hits}
    citations, by_number = Citations(), dict[int, Citation]()
    faults, shown = list[str](), 0
    async for verdict in check(_pieces(text, dice), found):
        if not isinstance(verdict, Supported):
            continue
        shown += 1
        sentence, new = citations.cite(verdict)
        by_number |= {citation.number: citation for citation in new}
        if not sentence.citations or not by_number.keys() >= set(sentence.citations):
            faults.append(f"{text!r} is numbered {sentence.citations}")
        for citation in map(by_number.__getitem__, sentence.citations):
            passage = known.get(citation.passage_id)
            if passage is None:
                faults.append(f"{text!r} cites a passage of no request")
            elif citation.quote not in passage.text:
                faults.append(f"{text!r} quotes what is not there")
            elif citation.url != passage.place.url or not citation.link.startswith(citation.url):
                faults.append(f"{text!r} leads to {citation.link}")
            if _EVIL in sentence.cited + citation.link:
                faults.append(f"{text!r} shows an address")
    return faults, shown


async def test_no_citation_is_forged(rows: Rows) -> None:
    row = rows.add(
        "S4",
        "Citations forged by the model",
        requirement="0 outside the request, 0 foreign addresses",
    )
    dice, drafts = random.Random(4), rows.count(1_500, 20_000)
    found, faults, shown = evidence(*_BOOK), list[str](), 0
    for _ in range(drafts):
        parts = dice.randrange(1, 4)
        text = "\n".join(dice.choice(_CLAIMS) + dice.choice(_FORGED) for _ in range(parts))
        told, count = await _spoofed(text, found, dice)
        faults += told
        shown += count
    row.record(
        f"{drafts:,} drafts of true and false sentences with {len(_FORGED)} kinds of markers and "
        "addresses ([99], links, other digits, footnotes, markup), cut at random",
        "; ".join(faults[:3]) or f"0 of {shown:,} shown sentences cite or lead elsewhere",
        passed=not faults and shown > drafts // 4,
    )
