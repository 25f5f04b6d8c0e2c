"""Keep the order of the shown sentences: what one leans on, repeats or is announced by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bythebook.grounding.claim_parser import parse_claim
from bythebook.grounding.framing import without_connective
from bythebook.grounding.stream_splitter import DraftClaim
from bythebook.grounding.verdicts import Supported, Withheld


class AnswerOrder:
    """Sentences of an answer in order: what comes before a sentence, and what announces it."""

    def __init__(self, shown: Sequence[Supported]) -> None:
        self._earlier = shown  # by another draft
        self._own: list[Supported] = []
        self._announcement: DraftClaim | None = None
        self.before: Supported | Withheld | None = shown[-1] if shown else None

    def add(
        self, claim: DraftClaim, verdict: Supported | Withheld | None
    ) -> Iterator[Supported | Withheld]:
        """Yield what is to be shown or counted now; a verdict of None is an announcement."""
        if verdict is None:
            self._announcement = claim
            return
        if is_shown(verdict, self._earlier):
            return
        if isinstance(verdict, Supported) and self._is_quoted(verdict):
            reason = "the book's words for it are already shown"
            finding = replace(verdict.finding, reasons=(reason,))
            verdict = Withheld(verdict.replaces or verdict.text, finding, is_claim=True)
        if isinstance(verdict, Supported):
            yield from self._announced(verdict)
            self._own.append(verdict)
        elif not claim.lead.startswith("\n"):
            self._announcement = None
            yield verdict
        else:
            yield verdict
        self.before = verdict
        if isinstance(verdict, Supported) and verdict.also is not None:
            yield from self._further(verdict.also)

    def _further(self, verdict: Supported) -> Iterator[Supported]:
        """Yield further words for the same sentence, unless they lean on others or are shown."""
        is_new = not self._is_quoted(verdict) and not is_shown(verdict, self._earlier)
        if is_new and stands(verdict, self.before):
            self._own.append(verdict)
            self.before = verdict
            yield verdict

    def _is_quoted(self, verdict: Supported) -> bool:
        """Return whether these words of the book are shown in place of an earlier sentence."""
        return verdict.is_verbatim and any(
            (other.replaces or verdict.replaces)
            and other.is_verbatim
            and other.hit.passage.id == verdict.hit.passage.id
            and verdict.quote in other.quote
            for other in self._own
        )

    def _announced(self, verdict: Supported) -> Iterator[Supported]:
        """Yield a sentence after its announcement: on the same line, the two are one."""
        announcement, self._announcement = self._announcement, None
        if announcement is None:
            yield verdict
        elif "\n" in verdict.lead or "\n" in verdict.text:
            yield replace(verdict, text=announcement.text, lead=announcement.lead, replaces="")
            yield verdict
        else:
            text = f"{announcement.text} {verdict.text}"
            yield replace(verdict, text=text, lead=announcement.lead)


def is_shown(verdict: Supported | Withheld, shown: Sequence[Supported]) -> bool:
    """Return whether the same words of the same passage were already quoted."""
    return isinstance(verdict, Supported) and any(
        verdict.hit.passage.id == other.hit.passage.id and verdict.quote in other.quote
        for other in shown
    )


def stands(verdict: Supported, before: Supported | Withheld | None) -> bool:
    """Return whether a leading pronoun such as "it" keeps its antecedent in the answer."""
    units = verdict.hit.passage.units
    if not parse_claim(without_connective(verdict.text)).leans:
        return True
    first = units[0].end if units else 0
    if verdict.hit.passage.text.find(verdict.quote) < first:
        return True  # its antecedent is the heading
    return isinstance(before, Supported) and before.hit.passage.id == verdict.hit.passage.id
