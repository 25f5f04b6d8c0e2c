"""How many word pieces an embedder will see in a text: an estimate that leans to more."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"[A-Za-z]+|[0-9]+"
    r"|[\u00c0-\u024f\u0370-\u1fff]{1,2}"  # other alphabets: a piece is about two letters
    r"|[\u2500-\u259f]{1,4}"  # drawings made of lines and boxes
    r"|[^\sA-Za-z0-9]"
)
_LONG = re.compile(r"[A-Za-z]{9,}|[0-9]{4,}")


def estimate_tokens(text: str) -> int:
    """Short words are one piece, long ones several; every other sign is one of its own."""
    count = len(_PIECE.findall(text))
    for run in _LONG.findall(text):
        count += (len(run) - 1) // 3 if run[0] <= "9" else (len(run) - 2) // 5
    return count + (count + 11) // 12  # rare names and terms fall into more pieces than most
