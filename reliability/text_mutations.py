"""Change texts at random, to test that parsers survive any input."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutate_text(
    text: str, fragments: Sequence[str], dice: random.Random, *, longest: int, most: int
) -> str:
    """Insert fragments, once or up to ``most`` times, and delete or copy pieces of the text.

    Deleted pieces have up to ``longest`` characters, copied ones twice as many.
    """
    pieces = list(text)
    for _ in range(dice.randrange(1, 12)):
        place = dice.randrange(len(pieces) + 1)
        match dice.randrange(4):
            case 0:
                pieces[place:place] = dice.choice(fragments)
            case 1:
                del pieces[place : place + dice.randrange(1, longest)]
            case 2:
                start = dice.randrange(len(pieces) + 1)
                pieces[place:place] = pieces[start : start + dice.randrange(1, 2 * longest)]
            case _:
                pieces[place:place] = dice.choice(fragments) * dice.randrange(1, most)
    return "".join(pieces)
