"""Write Markdown tables and a plot of the figures of all systems."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from peers.run import Figures
from peers.setting import Peer

_LEAD = """\
`python bench/peers.py --work DIR` writes this section; the [method](peers/README.md) \
is described separately.
One run on one machine: {machine}, {cores} cores, Python {python}.
"""


@dataclass(frozen=True)
class Line:
    """One search variant of one system."""

    peer: Peer
    variant: str
    first: bool  # variant of its system, which carries the figures of the system
    taken: Figures

    @property
    def title(self) -> str:
        alone = len(self.taken["minibook"]["variants"]) == 1
        return self.peer.title if alone else f"{self.peer.title}, {self.variant}"

    def of(self, step: str) -> Figures:
        found: Figures = self.taken[step]["variants"][self.variant]
        return found


def lines_of(peers: Sequence[Peer], taken: dict[str, Figures]) -> list[Line]:
    return [
        Line(peer, variant, number == 0, taken[peer.name])
        for peer in peers
        if peer.name in taken
        for number, variant in enumerate(taken[peer.name]["minibook"]["variants"])
    ]


# --- Markdown -------------------------------------------------------------------------------

Cell = Callable[[Line], str]


def markdown(lines: Sequence[Line]) -> str:
    firsts = [line for line in lines if line.first]
    parts = [
        _LEAD.format(
            machine=platform.machine(), cores=os.cpu_count(), python=platform.python_version()
        ),
        "![The main figures compared](peers/plot.svg)",
        _table("Retrieval in twelve encyclopaedia articles", lines, _FINDING),
        _table("Query time", lines, _ASKING),
        _table("Ingesting the twelve articles", firsts, _MINIBOOK),
        _table("Ingesting the 106-page book", firsts, _BOOK),
        _table("Footprint", firsts, _WEIGHT),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(caption: str, lines: Sequence[Line], columns: dict[str, Cell]) -> str:
    rows = [
        f"### {caption}\n",
        f"| system | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for line in lines:
        name = line.title if columns in (_FINDING, _ASKING) else line.peer.title
        rows.append(f"| {name} | {' | '.join(cell(line) for cell in columns.values())} |")
    return "\n".join(rows)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def _pieces(line: Line, ingest: Figures) -> int:
    return int(ingest["pieces" if line.peer.windows else "pieces_within_limit"])


def _speed(line: Line, ingest: Figures, seconds: float) -> str:
    pieces = _pieces(line, ingest)
    return f"{pieces / seconds:,.0f}" if pieces and seconds else "–"


def _outside(ingest: Figures) -> str:
    if not ingest["embedding_seconds"]:
        return "–"
    return f"{1 - ingest['embedding_seconds'] / ingest['seconds']:.0%}"


def _times(found: Figures) -> str:
    return f"{found['p50_ms']:.1f} / {found['p95_ms']:.1f}"


_FINDING: dict[str, Cell] = {
    "hit@1": lambda line: _share(line.of("minibook")["hit_at_1"]),
    "hit@5": lambda line: _share(line.of("minibook")["hit_at_5"]),
    "MRR@10": lambda line: _share(line.of("minibook")["mrr_at_10"]),
    "AUROC off-book": lambda line: _share(line.of("minibook")["auroc_off_book"]),
    "AUROC adversarial": lambda line: _share(line.of("minibook")["auroc_adversarial"]),
}
_ASKING: dict[str, Cell] = {
    "p50 / p95 ms": lambda line: _times(line.of("minibook")),
    "10k passages: p50 / p95 ms": lambda line: _times(line.of("large")),
    "cold start s": lambda line: f"{line.of('cold')['seconds']:.1f}",
    "memory MB": lambda line: f"{line.of('cold')['peak_mb']:.0f}",
}
_MINIBOOK: dict[str, Cell] = {
    "chunks": lambda line: str(line.taken["minibook"]["chunks"]),
    "s": lambda line: f"{line.taken['minibook']['ingest']['seconds']:.1f}",
    "model s": lambda line: f"{line.taken['minibook']['ingest']['embedding_seconds']:.1f}",
    "tokens": lambda line: f"{_pieces(line, line.taken['minibook']['ingest']):,}",
    "tokens per model second": lambda line: _speed(
        line,
        line.taken["minibook"]["ingest"],
        line.taken["minibook"]["ingest"]["embedding_seconds"],
    ),
    "re-ingest s": lambda line: f"{line.taken['again']['ingest']['seconds']:.1f}",
    "re-ingest texts embedded": lambda line: str(line.taken["again"]["ingest"]["texts"]),
    "re-ingest chunks": lambda line: (
        f"{line.taken['minibook']['chunks']} → {line.taken['again']['chunks']}"
    ),
}
_BOOK: dict[str, Cell] = {
    "first answer s": lambda line: f"{line.taken['book']['first_answer_seconds']:.1f}",
    "finished s": lambda line: f"{line.taken['book']['finished_seconds']:.1f}",
    "chunks": lambda line: str(line.taken["book"]["chunks"]),
    "texts embedded": lambda line: str(line.taken["book"]["ingest"]["texts"]),
    "tokens": lambda line: f"{_pieces(line, line.taken['book']['ingest']):,}",
    "tokens per model second": lambda line: _speed(
        line, line.taken["book"]["ingest"], line.taken["book"]["ingest"]["embedding_seconds"]
    ),
    "tokens/s": lambda line: _speed(
        line, line.taken["book"]["ingest"], line.taken["book"]["ingest"]["seconds"]
    ),
    "outside the model": lambda line: _outside(line.taken["book"]["ingest"]),
    "texts truncated": lambda line: (
        "0" if line.peer.windows else str(line.taken["book"]["ingest"]["texts_over_limit"])
    ),
    "memory MB": lambda line: f"{line.taken['book']['ingest']['peak_mb']:.0f}",
    "intact code blocks": lambda line: (
        f"{line.taken['book']['fences_whole']} of {line.taken['book']['fences']}"
    ),
}
_WEIGHT: dict[str, Cell] = {
    "install MB": lambda line: f"{_install_mb(line):,.0f}",
    "packages": lambda line: str(line.taken["install"]["packages"]),
    "start s": lambda line: f"{_start_seconds(line):.2f}",
}


def _install_mb(line: Line) -> float:
    return float(line.taken["install"]["packages_mb"] + line.taken["install"]["model_mb"])


def _start_seconds(line: Line) -> float:
    """Return the median over all processes; the first ones start with a cold page cache."""
    return statistics.median(s for told in line.taken.values() for s in told["start_seconds"])


# --- the plot -------------------------------------------------------------------------------

_WIDTH, _LABELS, _BAR, _GAP = 760, 170, 16, 6
_OURS, _THEIRS = "#2a6f97", "#a9b4bd"
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.h{font-weight:600;font-size:13px}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


@dataclass(frozen=True)
class Panel:
    title: str
    value: Callable[[Line], float]
    show: str
    once: bool  # one bar per system, not one per search variant


_PANELS = (
    Panel("Right paragraph first (hit@1)", lambda x: x.of("minibook")["hit_at_1"], "{:.3f}", False),
    Panel(
        "106 pages: seconds to the first answer",
        lambda x: x.taken["book"]["first_answer_seconds"],
        "{:.0f} s",
        True,
    ),
    Panel("A question at 10k passages, p50", lambda x: x.of("large")["p50_ms"], "{:.0f} ms", False),
    Panel("Installed, model included", _install_mb, "{:,.0f} MB", True),
)


def svg(lines: Sequence[Line]) -> str:
    body, y = [], 10.0
    for panel in _PANELS:
        shown = [line for line in lines if line.first or not panel.once]
        body += _bars(panel, shown, y)
        y += 30 + len(shown) * (_BAR + _GAP) + 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y:.0f}" role="img">'
        f"<title>By the Book and its peers</title><style>{_STYLE}</style>{''.join(body)}</svg>\n"
    )


def _bars(panel: Panel, lines: Sequence[Line], top: float) -> Iterator[str]:
    longest = max((panel.value(line) for line in lines), default=0.0) or 1.0
    yield f'<text class="h" x="0" y="{top + 13:.0f}">{escape(panel.title)}</text>'
    for row, line in enumerate(lines):
        y = top + 26 + row * (_BAR + _GAP)
        value = panel.value(line)
        width = max(1.0, (_WIDTH - _LABELS - 90) * value / longest)
        name = line.peer.title if panel.once else line.title
        colour = _OURS if line.peer.own else _THEIRS
        said, end = panel.show.format(value), _LABELS + width + 6
        yield (
            f'<text x="{_LABELS - 8}" y="{y + 12:.0f}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{_LABELS}" y="{y:.0f}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
            f'<text x="{end:.1f}" y="{y + 12:.0f}">{said}</text>'
        )


def summary(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the figures as data: one object per search variant."""
    return [{"system": line.peer.name, "variant": line.variant, **_figures(line)} for line in lines]


def _figures(line: Line) -> dict[str, Any]:
    """Return the figures of the system, with those of this variant only."""
    return {
        name: {**{key: told[key] for key in told if key != "variants"}, **_own(line, name)}
        for name, told in line.taken.items()
    }


def _own(line: Line, step: str) -> Figures:
    return line.of(step) if "variants" in line.taken[step] else {}
