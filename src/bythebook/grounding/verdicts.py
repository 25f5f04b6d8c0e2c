"""Outcomes of the verification of a sentence: shown, replaced by the book's words, or withheld."""

from __future__ import annotations

from dataclasses import dataclass

from bythebook.types import Hit, Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a sentence is supported or not, and counts of what was removed from it."""

    odds: float = 1.0
    reasons: tuple[str, ...] = ()
    foreign_markers: int = 0  # markers that name no passage of the evidence
    addresses: int = 0  # links and markup

    def on(self, text: str, *, holds: bool, replaces: str = "") -> Verdict:
        return Verdict(
            text, holds, self.odds, self.reasons, self.foreign_markers, self.addresses, replaces
        )


@dataclass(frozen=True, slots=True)
class Supported:
    """A sentence to show, and the quote from the evidence that supports it."""

    text: str
    hit: Hit
    quote: str
    lead: str = " "  # whitespace before it in the draft: a space, a newline, an empty line
    finding: Finding = Finding()
    is_verbatim: bool = True
    replaces: str = ""  # the model's sentence that these words of the book are shown for
    also: Supported | None = None  # further words of the book for the same sentence
    closes: bool = True  # it is the last sentence of its run, which shares one quote

    @property
    def is_own(self) -> bool:
        """Return whether the writer's own sentence is shown."""
        return not self.replaces

    @property
    def verdict(self) -> Verdict:
        return self.finding.on(self.text, holds=True, replaces=self.replaces)


@dataclass(frozen=True, slots=True)
class Withheld:
    """A sentence that the evidence does not support."""

    text: str
    finding: Finding = Finding(odds=0.0)
    is_claim: bool = False  # it could be true; otherwise it is code or says too little
    is_refuted: bool = False  # the evidence contradicts it, or lacks its names or numbers

    @property
    def verdict(self) -> Verdict:
        return self.finding.on(self.text, holds=False)
