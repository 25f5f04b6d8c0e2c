"""Extractive writer: answers with runs of the book's own text and needs no model service.

It takes the best passages, trims each to the blocks around the unit that answers, and quotes them
best first. A question of several parts is answered part by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import median

from bythebook.answering.gate import QuestionPart
from bythebook.answering.runs import (
    Block,
    announces,
    blocks_of,
    count_words,
    is_header,
    leans_back,
    quote_run,
)
from bythebook.grounding.verifier import Supported
from bythebook.language.markup import is_readable
from bythebook.language.terms import covered, language_of_passage, term_ids
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.text.text_kinds import ASIDE, HIDDEN, asked_kinds
from bythebook.types import Hit, UnitKind

_MOST_CHARACTERS = 1900  # of the text; envelope: GroundedAnswer.text has 2000 with its markers
_MOST_RUNS = 3  # for each part of the question
_MOST_WORDS = 190  # of all runs for a part, where blocks allow it
_FIRST_WORDS = 120  # of the first run if a hit of a similar score follows
_RIVAL = 0.8  # share of the best score from which a hit counts as similar
_SECTION_WORDS = 80  # of a section in the overview of its page
_MOST_WORDS_OF_PARTS = 230  # of all runs for a question of several parts
_SPARE = 60  # of them that are kept for the sides of a comparison
_OVER = 10  # words by which the last run may exceed the sum
_LONGEST_BLOCK = 200  # words: a longer list, table or paragraph is not shown whole
_LEAST_WORDS = 25  # that must be left for another run
_LEAST_SCORE = 0.4  # of a further hit, as a share of the best one
_IRRELEVANT = 0.8  # by this much a block is less similar to the question than the best one
_FEWEST_ITEMS = 4  # of a list of independent items
_SHORT_LIST = 60  # words
_STANDS_OUT = 0.4  # by this much the score of the item that answers exceeds the median
_ASIDE = 0.4  # factor for passages that only prepare, repeat or test
# Weights of a unit's score, in addition to its cosine with the question.
_OWN_WORDS = 0.5  # share of the question's words in the unit
_PLACED_WORDS = 0.3  # … in the unit or the headings above it
_DEFINES = 0.6  # it defines the term that was asked for
_IS_CODE = 0.4  # it is code, and code was asked for
_COUNTS = 0.15  # it has a number and one was asked for
_READ = 0.5  # times the probability of the reading model that it belongs in the answer

_HIDDEN = float("-inf")  # score of a unit that is not shown to whoever asks

_Key = tuple[str, str]  # file and text of a unit


@dataclass(frozen=True, slots=True)
class _Run:
    hit: Hit
    units: Sequence[int]  # indices into the passage's units, in order

    @property
    def words(self) -> int:
        return count_words(self.hit.passage, self.units)

    @property
    def characters(self) -> int:
        units = self.hit.passage.units
        return sum(units[unit].end - units[unit].start + 1 for unit in self.units)


class ExtractiveWriter:
    name = "extractive"

    def extract(self, parts: Sequence[QuestionPart]) -> Iterator[Supported]:
        """Yield the sentences that answer the question, with their hits, in reading order.

        The whole question comes first, then its parts. After the sides of a comparison, more of
        what is about the whole follows.
        """
        shown: set[_Key] = set()
        characters, words = 0, _MOST_WORDS if len(parts) == 1 else _MOST_WORDS_OF_PARTS
        again = [parts[0]] if any(part.is_side for part in parts) else []
        for number, part in enumerate([*parts, *again]):
            share = words // (len(parts) - number) if number < len(parts) else words - _SPARE
            if number and share < _LEAST_WORDS:
                break
            if part.is_side:
                runs = _run_of_side(part, share, shown)
            else:
                most_runs = _MOST_RUNS if len(parts) == 1 else 1
                runs = choose_runs(part, share, most_runs=most_runs, shown=shown)
            for run in _in_book_order(runs):
                if characters and (
                    characters + run.characters > _MOST_CHARACTERS or run.words > words + _OVER
                ):
                    continue
                yield from quote_run(run.hit, run.units, lead="\n\n" if characters else "")
                characters += run.characters
                words -= run.words
                shown.update(_keys(run))


def _run_of_side(part: QuestionPart, words: int, shown: Set[_Key]) -> list[_Run]:
    """Return one run about this side; none if the answer already shows a sentence of it."""
    best = sorted(part.hits, key=lambda hit: -_rank(part.question, hit))[:1]
    runs = choose_runs(replace(part, hits=tuple(best)), words, most_runs=1)
    return [run for run in runs if not any(key in shown for key in _keys(run))]


def choose_runs(
    part: QuestionPart, words: int, *, most_runs: int = _MOST_RUNS, shown: Set[_Key] = frozenset()
) -> list[_Run]:
    """Return the runs of the best hits that together have about as many words, best first."""
    if part.is_overview:
        return list(_overview(part.hits, words))
    question = part.question
    ranks = {hit.passage.id: _rank(question, hit) for hit in part.hits}
    ranked = sorted(part.hits, key=lambda hit: -ranks[hit.passage.id])
    likely = [hit for hit in ranked if hit.answers >= _LEAST_SCORE * ranked[0].answers]
    runs: list[_Run] = []
    left, known = words, set(shown)
    while likely and len(runs) < most_runs and (not runs or left >= _LEAST_WORDS):
        hit = likely.pop(0)
        most = left
        if not runs:
            rivals = [other for other in likely if _is_rival(ranks, other, hit)]
            most = min(left, _FIRST_WORDS) if rivals else left
        run = _without(known, _Run(hit, _trim(question, hit, most)))
        if not run.units or (runs and run.words > most):
            continue
        if not runs:  # the rest of its section comes next
            likely.sort(key=lambda other: other.passage.place != run.hit.passage.place)
        runs.append(run)
        known.update(_keys(run))
        left -= run.words
    return runs


def _is_rival(ranks: Mapping[str, float], hit: Hit, best: Hit) -> bool:
    return ranks[hit.passage.id] >= _RIVAL * ranks[best.passage.id]


def _rank(question: AnalyzedQuestion, hit: Hit) -> float:
    kind = hit.passage.text_kind
    is_aside = kind in ASIDE | HIDDEN and kind not in asked_kinds(question.text)
    return hit.answers * (_ASIDE if is_aside else 1)


def _trim(question: AnalyzedQuestion, hit: Hit, most: int) -> Sequence[int]:
    """Return the units of the best block and the blocks around it, up to ``most`` words.

    The block that answers is shown whole if its length allows it. A block that has nothing to do
    with the question ends the run: it may be a note on something else, or planted.
    """
    passage = hit.passage
    if not passage.units:
        return ()
    scores = _unit_scores(question, hit)
    blocks = blocks_of(passage)
    block_scores = [max(scores[unit] for unit in block) for block in blocks]
    best = block_scores.index(max(block_scores))
    if item := _single_item(question, hit, blocks[best], scores):
        return item
    if _is_long(hit, blocks[best]):
        return _part(hit, blocks[best], scores, most)
    sizes = [_Run(hit, _shown(hit, block)).words for block in blocks]
    similar = [max(_similarity(question, hit, unit) for unit in block) for block in blocks]
    first, last, words = best, best, sizes[best]
    while fitting := [
        at
        for at in (first - 1, last + 1)
        if 0 <= at < len(blocks)
        and words + sizes[at] <= most
        and similar[at] >= similar[best] - _IRRELEVANT
        and block_scores[at] > _HIDDEN
    ]:
        nearest = max(fitting, key=lambda at: block_scores[at])
        first, last, words = min(first, nearest), max(last, nearest), words + sizes[nearest]
    return _whole(hit, range(blocks[first].start, blocks[last].stop))


def _shown(hit: Hit, units: Sequence[int]) -> list[int]:
    passage = hit.passage
    return [unit for unit in units if is_readable(passage.unit_text(passage.units[unit]))]


def _overview(hits: Sequence[Hit], words: int) -> Iterator[_Run]:
    """Yield the beginnings of the passages: introductions as far as possible, others shortly."""
    for hit in hits:
        is_introduction = hit.score >= hits[0].score
        most = words if is_introduction else min(words, _SECTION_WORDS)
        run = _Run(hit, _beginning(hit, most) if hit.passage.units else ())
        if run.units and run.words <= most:
            yield run
            words -= run.words


def _beginning(hit: Hit, most: int) -> Sequence[int]:
    """Return the units of the first blocks that have at most as many words; at least one block."""
    blocks = blocks_of(hit.passage)
    end = blocks[0].stop
    for block in blocks[1:]:
        if count_words(hit.passage, range(block.stop)) > most:
            break
        end = block.stop
    return _whole(hit, range(end))


def _single_item(
    question: AnalyzedQuestion, hit: Hit, block: Block, scores: Sequence[float]
) -> Sequence[int]:
    """Return the item that answers, if the block is a list of independent items; else nothing.

    The items of a glossary are independent: no sentence introduces them, and one of them stands
    out. In a short list it must also define what was asked for.
    """
    passage = hit.passage
    items = [
        unit for unit in block if passage.text[: passage.units[unit].start].endswith(("- ", "* "))
    ]
    if len(items) < _FEWEST_ITEMS or items[0] != block[0]:
        return ()
    best = max(block, key=lambda unit: scores[unit])
    defines = question.type.is_defined_by(passage.unit_text(passage.units[best]))
    if count_words(passage, block) <= _SHORT_LIST and not defines:
        return ()
    if scores[best] - median(scores[unit] for unit in block) < _STANDS_OUT:
        return ()
    first = max(unit for unit in items if unit <= best)
    after = min((unit for unit in items if unit > best), default=block.stop)
    return range(first, after)


def _is_long(hit: Hit, block: Block) -> bool:
    run = _Run(hit, block)
    return run.words > _LONGEST_BLOCK or run.characters > _MOST_CHARACTERS


def _part(hit: Hit, block: Block, scores: Sequence[float], most: int) -> Sequence[int]:
    """Return the best rows of a long table, or the units around the best one, with their lead-in.

    A unit that is too long by itself is returned alone.
    """
    passage = hit.passage
    best = max(block, key=lambda unit: scores[unit])
    kind = passage.units[best].kind
    head = list(block[: next(i for i, u in enumerate(block) if passage.units[u].kind is kind)])
    if kind is UnitKind.ROW and is_header(passage, block[len(head)]):
        head.append(block[len(head)])
    if count_words(passage, head) > most // 2:
        head = head[-1:]
    chosen, words = {best}, count_words(passage, [*head, best])
    candidates = sorted(block, key=lambda unit: -scores[unit])
    if kind is not UnitKind.ROW:
        candidates = sorted(block, key=lambda unit: (abs(unit - best), -unit))
    for unit in candidates:
        size = count_words(passage, [unit])
        if unit in chosen or unit in head:
            continue
        if words + size > most or passage.units[unit].kind is not kind:
            if kind is UnitKind.ROW:
                continue
            break
        chosen.add(unit)
        words += size
    return _whole(hit, sorted({*head, *chosen}))


def _whole(hit: Hit, units: Sequence[int]) -> Sequence[int]:
    """Return the units with the antecedent of the first, without labels and lead-ins at the end."""
    passage = hit.passage
    if units and leans_back(passage, units[0]):
        before = units[0] - 1
        units = [before, *units] if passage.units[before].kind is UnitKind.SENTENCE else units
    last = len(units)
    while last > 1 and announces(passage, units[last - 1]):
        last -= 1
    return _shown(hit, units[:last])


def _similarity(question: AnalyzedQuestion, hit: Hit, unit: int) -> float:
    """Return how similar a unit is to the question, by meaning and words."""
    passage = hit.passage
    language = language_of_passage(passage)
    words = set(term_ids(passage.unit_text(passage.units[unit]), language))
    headings = set(term_ids(passage.place.path, language))
    cosine = hit.unit_cosines[unit] if unit < len(hit.unit_cosines) else 0.0
    own, placed = covered(question.terms, words), covered(question.terms, words | headings)
    return cosine + _OWN_WORDS * own + _PLACED_WORDS * placed


def _unit_scores(question: AnalyzedQuestion, hit: Hit) -> list[float]:
    """Return for each unit how likely it answers the question."""
    scores = []
    for index, unit in enumerate(hit.passage.units):
        text = hit.passage.unit_text(unit)
        score = _similarity(question, hit, index)
        if unit.kind is UnitKind.CODE:
            score += _IS_CODE * question.type.code
        else:
            score += _DEFINES * question.type.is_defined_by(text)
        score += _COUNTS * question.type.is_counted_by(text)
        if hit.reading is not None and index < len(hit.reading.relevance):
            score += _READ * hit.reading.relevance[index]
        scores.append(score if text.strip() else _HIDDEN)
    return scores


def _in_book_order(runs: Sequence[_Run]) -> Iterator[_Run]:
    """Yield the runs best first, but those of one section in their order there."""
    left = list(runs)
    while left:
        place = left[0].hit.passage.place
        together = [run for run in left if run.hit.passage.place == place]
        yield from sorted(together, key=lambda run: run.hit.passage.position)
        left = [run for run in left if run.hit.passage.place != place]


def _without(shown: Set[_Key], run: _Run) -> _Run:
    """Return the run without the units that are shown already."""
    passage = run.hit.passage
    units = [
        unit
        for unit in run.units
        if (passage.place.file, passage.unit_text(passage.units[unit])) not in shown
    ]
    return _Run(run.hit, units)


def _keys(run: _Run) -> Iterator[_Key]:
    passage = run.hit.passage
    for unit in run.units:
        yield passage.place.file, passage.unit_text(passage.units[unit])
