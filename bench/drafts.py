"""Count what the verifier shows of labelled sentences as a language model writes them.

    python -m bench.drafts DRAFTS.jsonl [--read 40]

A row has ``passages`` and ``sentences``, each sentence with the label ``supported``. A sentence is
shown as it is, replaced by the book's own words, or withheld; one that only announces others is
left out. A replacement counts as content
shown if the quotation holds at least half of the sentence's content words, or if the reading model
takes it alone for support, or if the cosine of the two is at least .7. This is an estimate:
``--read`` prints as many of the replaced true sentences with their quotations, to be read.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.check import read_drafts
from tests.grounding.claim_mutations import Case

from bythebook.grounding.claim_parser import parse_claim
from bythebook.grounding.framing import is_announcement, without_connective
from bythebook.grounding.sentence_judge import SentenceVerifier, judge, keys_of_evidence
from bythebook.grounding.stream_splitter import claim_of
from bythebook.grounding.verdicts import Supported, Withheld
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.reader import LocalReader
from bythebook.types import Evidence, Hit, Unit

_MOST_WORDS = 0.5
_SUPPORTED = 0.5
_NEAR = 0.7


@dataclass(frozen=True)
class Outcome:
    case: Case
    verdict: Supported | Withheld
    carries: bool  # the quotation in its place holds its content

    @property
    def name(self) -> str:
        if isinstance(self.verdict, Withheld):
            return "withheld"
        return "own" if self.verdict.is_own else "replaced"


async def outcomes(path: Path) -> list[Outcome]:
    verifier = SentenceVerifier(LocalEmbedder("minilm"), LocalReader())
    found = []
    for case in read_drafts(path):
        hits = tuple(Hit(passage, rank, 0.5, 0.9) for rank, passage in enumerate(case.passages, 1))
        if is_announcement(case.claim, keys_of_evidence(hits)):
            continue  # it is shown with what it announces
        verdict = await judge(claim_of(case.claim), Evidence(hits), verifier)
        carries = False
        if isinstance(verdict, Supported) and not verdict.is_own:
            carries = await holds_content(case.claim, verdict, verifier)
        found.append(Outcome(case, verdict, carries))
    return found


async def holds_content(sentence: str, shown: Supported, verifier: SentenceVerifier) -> bool:
    text = without_connective(sentence)
    quotations = [shown, *filter(None, [shown.also])]
    shown_text = "\n".join(quotation.text for quotation in quotations)
    passage = shown.hit.passage
    keys = parse_claim(shown_text).keys | parse_claim(passage.place.path).keys
    asked = [term.key for term in parse_claim(text).terms if not term.is_light]
    if sum(key in keys for key in asked) >= _MOST_WORDS * len(asked):
        return True
    vectors = await verifier.similarity.vectors([text, shown_text])
    if vectors is not None and vectors[0] @ vectors[1] >= _NEAR:
        return True
    quoted = replace(passage, text=shown_text, units=(Unit(0, len(shown_text)),))
    if verifier.reader is None:
        return False
    (support,) = await verifier.reader.support([text], [quoted])
    return support.probability >= _SUPPORTED


def report(found: Sequence[Outcome]) -> None:
    for true, title in ((True, "true"), (False, "false")):
        mine = [outcome for outcome in found if outcome.case.true is true]
        names = Counter(outcome.name for outcome in mine)
        content = names["own"] + sum(outcome.carries for outcome in mine)
        shares = ", ".join(f"{name} {names[name] / len(mine):.3f}" for name in sorted(names))
        print(f"{title}: {len(mine)} sentences: {shares}; content shown {content / len(mine):.3f}")
        kinds = defaultdict(list)
        for outcome in mine:
            kinds[outcome.case.kind].append(outcome)
        for kind, group in sorted(kinds.items(), key=lambda item: -len(item[1])):
            each = Counter(outcome.name for outcome in group)
            carried = sum(outcome.carries for outcome in group)
            print(
                f"  {kind}: {len(group)}, own {each['own']}, "
                f"replaced {each['replaced']} ({carried} hold the content)"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drafts", type=Path)
    parser.add_argument("--read", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    found = asyncio.run(outcomes(options.drafts))
    report(found)
    print(f"{1000 * (time.perf_counter() - began) / len(found):.0f} ms for each sentence")
    replaced = [o for o in found if o.case.true and o.name == "replaced"]
    for outcome in random.Random(7).sample(replaced, min(options.read, len(replaced))):
        mark = "holds" if outcome.carries else "HOLDS NOT"
        print(f"\n{mark} | {outcome.case.kind} | {outcome.case.claim}\n  {outcome.verdict.text}")
        if isinstance(outcome.verdict, Supported) and outcome.verdict.also:
            print(f"  AND: {outcome.verdict.also.text}")


if __name__ == "__main__":
    main()
