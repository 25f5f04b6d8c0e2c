"""Explanations of hits and replies, as text and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bythebook.cli.terminal_text import shortened

if TYPE_CHECKING:
    from bythebook.types import Hit, Reply

_LONGEST = 90
# Names in the JSON output that differ from those of the fields.
_JSON_NAMES = {
    "missing_rare_term": "missing",
    "negation_mismatch": "denied",
    "unmatched_entities": "strange",
    "echo": "hollow",
}


def why_found(hit: Hit) -> str:
    seen, ranks = hit.signals, hit.ranks
    return (
        f"meaning of the passage {seen.passage_cosine:.2f} (#{ranks.passage}), "
        f"of its best sentence {seen.unit_cosine:.2f} (#{ranks.unit}); "
        f"words {seen.term_weight:.2f} (#{ranks.words}), "
        f"{seen.coverage:.0%} of the question's; of {ranks.among} weighed"
        f"{'; says no more than was asked' if seen.echo else ''}"
    )


def found(hit: Hit) -> dict[str, Any]:
    signals = {_JSON_NAMES.get(name, name): value for name, value in asdict(hit.signals).items()}
    return {**signals, "ranks": asdict(hit.ranks)}


def why(reply: Reply) -> Iterator[str]:
    """Yield lines about the passages found, the gate's reasons and the check of each sentence."""
    from bythebook.answering.gate import reasons

    yield "Found"
    for hit in reply.evidence.considered:
        yield f"  {hit.score:.2f}  {hit.passage.place.path}"
        yield f"        {why_found(hit)}"
    yield "Gate"
    for reason in reasons(reply.question, reply.evidence):
        yield f"  {reason}"
    if reply.verdicts:
        yield "Check"
    for verdict in reply.verdicts:
        told = "; ".join(verdict.reasons) or ("word for word" if verdict.odds == 1 else "")
        held = "holds" if verdict.holds else "withheld"
        yield f"  {held} ({verdict.odds:.2f}) “{shortened(verdict.text, _LONGEST)}” {told}".rstrip()
        if verdict.markers or verdict.addresses:
            yield f"        dropped: {verdict.markers} markers, {verdict.addresses} addresses"


def explained(reply: Reply) -> dict[str, Any]:
    from bythebook.answering.gate import reasons

    return {
        "found": [
            {"chunk_id": hit.passage.id, "score": hit.score, **found(hit)}
            for hit in reply.evidence.considered
        ],
        "gate": list(reasons(reply.question, reply.evidence)),
        "check": [asdict(verdict) for verdict in reply.verdicts],
    }
