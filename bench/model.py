"""What answering costs beyond the language model itself: the first sentence, bare and through us.

    PYTHONPATH=. python bench/model.py --home HOME [--rounds 40]

A scripted model on this machine streams two sentences of the book, a token every 20 ms. *Bare* is
how long a client of its own takes until the first sentence is there with its marker. *Ours* is how
long ``library.ask`` takes, from the question to the first sentence that may be shown: search, gate,
prompt, the same model, and the check. The check waits for the token after the sentence, which says
that it has ended: those 20 ms are the model's, and are counted as ours. The two are asked in turn;
the difference of the medians is what we add.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
from tests.providers.loopback import DONE, LAST, STREAM, Loopback, Request, Step, delta, usage

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.language.sentences import split_sentences
from bythebook.types import Question, Sentence, UnitKind

TOKEN_S = 0.02
WRITERS = ("openai:scripted", "agents:scripted")
ASKED = Question("What is a topic in ROS 2?", min_score=0.3)


class Script:
    """Says the book's own sentences, a word at a time."""

    def __init__(self, first: str, second: str) -> None:
        self.first, self.second = f"{first} [1]", f"{second} [1]"

    def __call__(self, _: Request) -> Iterable[Step]:
        yield STREAM
        for word in f"{self.first} {self.second}".split(" "):
            yield TOKEN_S
            yield delta(f"{word} ")
        yield from (delta(None, "stop"), usage(500, 40), DONE, LAST)


async def bare(client: httpx.AsyncClient, url: str, sentence: str) -> float:
    began, said = time.perf_counter(), ""
    body: dict[str, Any] = {"model": "scripted", "messages": [], "stream": True}
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            said += line.partition('"content": "')[2].partition('"')[0]
            if len(said.strip()) >= len(sentence):
                return time.perf_counter() - began
    raise AssertionError("the model stopped before its first sentence was whole")


async def ours(library: Book) -> float:
    began = time.perf_counter()
    async with aclosing(library.ask(ASKED)) as events:
        async for event in events:
            if isinstance(event, Sentence):
                return time.perf_counter() - began
    raise AssertionError("nothing was shown")


async def sentences(home: Path) -> tuple[str, str]:
    """Two of the best passage that has two, each by itself."""
    library = Book(load_settings({"home": home}, environ={}))
    hits = (await library.search(ASKED)).hits
    await library.close()
    for passage in (hit.passage for hit in hits):
        units = [unit for unit in passage.units if unit.kind is UnitKind.SENTENCE]
        texts = [
            text for unit in units if len(split_sentences(text := passage.unit_text(unit))) == 1
        ]
        if len(texts) > 1:
            return texts[0], texts[1]
    raise AssertionError("no passage of this book has two sentences")


async def measured(home: Path, rounds: int) -> AsyncIterator[tuple[str, list[float], list[float]]]:
    script = Script(*await sentences(home))
    with Loopback(script) as provider:
        for writer in WRITERS:
            chosen = {"base_url": f"{provider.url}/v1"}
            settings = load_settings({"home": home, "writer": writer, "model": chosen}, environ={})
            library = Book(settings)
            async with httpx.AsyncClient() as client:
                await ours(library)  # the first opens the book and loads its model
                times = [
                    (await bare(client, provider.url, script.first), await ours(library))
                    for _ in range(rounds)
                ]
            await library.close()
            yield writer, [one for one, _ in times], [other for _, other in times]


async def main(home: Path, rounds: int) -> None:
    print("| writer | bare ms p50 / p95 | ours ms p50 / p95 | added ms p50 |\n|---|---|---|---|")
    async for writer, alone, through in measured(home, rounds):
        added = statistics.median(through) - statistics.median(alone)
        print(f"| {writer} | {_ms(alone)} | {_ms(through)} | {added * 1000:.0f} |")


def _ms(times: list[float]) -> str:
    middle, most = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    return f"{middle * 1000:.0f} / {most * 1000:.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    asyncio.run(main(given.home, given.rounds))
