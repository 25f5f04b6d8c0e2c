"""Measure publishing, opening and querying at 10,000, 100,000 and 1,000,000 passages.

    python bench/scale.py --book DOCS --book DOCS2 --questions QA.jsonl --work DIR

The passages of the books are embedded once and repeated with noise until there are enough of
them: a third of the sentences come from another passage, words are invented, and vectors are
shifted towards another passage's and a random direction, and normalised. The first book's own
passages are included unchanged, and questions about it are asked.

Each step runs in its own process, so that its memory can be measured. *Exact* compares every
vector of every unit; the search is compared with its results. The figures go to
``bench/scale.json`` and to the section *Scale* of ``bench/RESULTS.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bythebook.config.settings import load_settings
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.store import Candidate, Generation, IndexedPassage, StoredVectors
from bythebook.language.terms import Vocabulary, term_evidence, term_id, terms_of
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.qdrant.embedded import EmbeddedGenerationStore
from bythebook.providers.qdrant.segment_files import EntryFiles
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.retrieval.calibration import MEASURED
from bythebook.retrieval.search import SearchContext, breadth, search
from bythebook.text.passage_records import vector_key
from bythebook.types import Passage, Question, Signals, Unit
from bythebook.wiring import build_book, open_catalog

EMBEDDER = "local:minilm-int8"
DIMENSION = 384
ASKED = 200  # questions
IN_CATALOG = 100_000  # passages with which the catalog is measured, where there are so many
BATCH = 512
BORROWED = 0.35  # share of a passage's units
INVENTED = 0.5  # share of the passages with a word of their own: vocabularies grow with books
LEANING, RANDOM = 0.5, 0.5  # lengths, beside the real vector's 1
NOISES = 4096  # random directions

RESULTS = Path(__file__).with_name("RESULTS.md")
FIGURES = Path(__file__).with_name("scale.json")


# --- the haystack ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Real:
    """A real passage and its units; a passage without units counts as one unit."""

    passage: Passage
    vector: np.ndarray
    unit_vectors: np.ndarray
    texts: list[str]
    words: list[np.ndarray]  # term numbers, unit by unit
    heading: np.ndarray  # term numbers

    @classmethod
    def of(cls, passage: Passage, stored: StoredVectors) -> Real:
        texts = [passage.unit_text(unit) for unit in passage.units] or [passage.text]
        vectors = stored.unit_vectors if len(passage.units) else stored.vector[None]
        words = [_numbers(terms_of(text)) for text in texts]
        heading = _numbers(sorted(set(terms_of(passage.place.path))))
        return cls(passage, stored.vector, vectors, texts, words, heading)


@dataclass(frozen=True)
class Recipe:
    """Sources of one passage of the corpus."""

    number: int
    one: int  # the real passage that it is like
    other: int  # the one that some of its units come from
    borrowed: np.ndarray  # which of its units
    invented: bool  # whether it has a word that no other has


@dataclass(frozen=True)
class Haystack:
    """A book among noise passages. Everything is derived from the passage's number."""

    real: list[Real]
    hidden: int  # the first so many are the book that is asked about
    size: int

    @classmethod
    def of(cls, homes: Sequence[Path], size: int) -> Haystack:
        books = [list(_of_home(home)) for home in homes]
        return cls([real for book in books for real in book], len(books[0]), size)

    def vocabulary(self) -> Vocabulary:
        frequencies: Counter[int] = Counter()
        length = 0
        for terms, counts in map(self._counts, self._recipes()):
            frequencies.update(terms.tolist())
            length += int(counts.sum())
        return Vocabulary(self.size, length / self.size, dict(frequencies))

    def entries(self, average_length: float) -> Iterator[IndexedPassage]:
        noise = np.random.default_rng(0).standard_normal((NOISES, DIMENSION), dtype=np.float32)
        noise *= RANDOM / np.linalg.norm(noise, axis=1, keepdims=True)
        for recipe in self._recipes():
            terms = _weights(*self._counts(recipe), average_length)
            if recipe.number < self.hidden:
                real = self.real[recipe.number]
                vectors = real.vector, real.unit_vectors[: len(real.passage.units)]
                yield IndexedPassage(real.passage, *vectors, terms)
            else:
                yield IndexedPassage(self._passage(recipe), *self._vectors(recipe, noise), terms)

    def _recipes(self) -> Iterator[Recipe]:
        for start in range(0, self.size, BATCH):
            rng = np.random.default_rng(start)
            pairs = rng.integers(len(self.real), size=(BATCH, 2)).tolist()
            borrowed = rng.random((BATCH, 256)) < BORROWED
            invented = (rng.random(BATCH) < INVENTED).tolist()
            for place in range(min(BATCH, self.size - start)):
                number = start + place
                if number < self.hidden:
                    yield Recipe(number, number, number, borrowed[place] & False, False)
                else:
                    yield Recipe(number, *pairs[place], borrowed[place], invented[place])

    def _counts(self, recipe: Recipe) -> tuple[np.ndarray, np.ndarray]:
        one = self.real[recipe.one]
        words = [one.heading, one.heading, *self._mixed(recipe, one.words, "words")]
        if recipe.invented:
            words.append(np.array([term_id(f"word{recipe.number}")], np.uint32))
        terms, counts = np.unique(np.concatenate(words), return_counts=True)
        return terms, counts

    def _passage(self, recipe: Recipe) -> Passage:
        passage = self.real[recipe.one].passage
        texts = self._mixed(recipe, self.real[recipe.one].texts, "texts")
        if recipe.invented:
            texts[-1] += f" word{recipe.number}"
        ends = np.cumsum([len(text) + 1 for text in texts]).tolist()
        text = " ".join(texts)
        return replace(
            passage,
            id=hashlib.sha256(f"{recipe.number}\0{text}".encode()).hexdigest(),
            text=text,
            content_hash=hashlib.sha256(text.encode()).hexdigest(),
            place=replace(passage.place, url=f"{passage.place.url}-{recipe.number // 16}"),
            units=tuple(
                Unit(end - 1 - len(one), end - 1) for one, end in zip(texts, ends, strict=True)
            ),
        )

    def _vectors(self, recipe: Recipe, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one, other = self.real[recipe.one], self.real[recipe.other]
        units = np.stack(self._mixed(recipe, list(one.unit_vectors), "unit_vectors"))
        mixed = np.concatenate([(one.vector + LEANING * other.vector)[None], units])
        mixed += noise[(recipe.number * 31 + np.arange(len(mixed))) % NOISES]
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        return mixed[0], mixed[1:]

    def _mixed(self, recipe: Recipe, own: list[Any], name: str) -> list[Any]:
        """Return the units of one passage, some replaced by units of the other."""
        others = getattr(self.real[recipe.other], name)
        return [
            others[place % len(others)] if recipe.borrowed[place % 256] else unit
            for place, unit in enumerate(own)
        ]


def _of_home(home: Path) -> Iterator[Real]:
    catalog = open_catalog(load_settings({"home": home}))
    passages = list(catalog.passages().values())
    vectors = catalog.vectors(EMBEDDER, [vector_key(passage) for passage in passages])
    for passage in passages:
        yield Real.of(passage, vectors[vector_key(passage)])


def _numbers(terms: Sequence[str]) -> np.ndarray:
    return np.array([term_id(term) for term in terms], np.uint32)


def _weights(terms: np.ndarray, counts: np.ndarray, average_length: float) -> dict[int, float]:
    """Weigh terms that are already counted, as ``Vocabulary.weigh`` does."""
    norm = 1.2 * (0.25 + 0.75 * counts.sum() / average_length)
    return dict(zip(terms.tolist(), (counts * 2.2 / (counts + norm)).tolist(), strict=True))


# --- the steps, each in a process of its own ------------------------------------------------------


def publish(hay: Haystack, folder: Path) -> dict[str, Any]:
    """Publish a new generation as an ingest does, without parsing and embedding."""
    vocabulary = hay.vocabulary()
    (folder / "vocabulary").write_bytes(vocabulary.to_bytes())
    shelf = EmbeddedGenerationStore(folder, dimension=DIMENSION)
    began, busy = time.perf_counter(), time.process_time()
    published = asyncio.run(shelf.publish("generation", hay.entries(vocabulary.average_length)))
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    assert published == hay.size
    return {
        "vocabulary_terms": len(vocabulary.frequencies),
        "vocabulary_mb": (folder / "vocabulary").stat().st_size / 1e6,
        "publish_s": seconds,
        "publish_cpu_s": busy,
        "passages_per_s": hay.size / seconds,
        "passages_per_cpu_s": hay.size / busy,
        "peak_rss_mb": _rss_mb("VmHWM"),
        "disk_gb": _disk_gb(folder / "generation"),
    }


def making(hay: Haystack) -> dict[str, Any]:
    """Measure the CPU time of generating the noise, and of weighing terms."""
    some = replace(hay, size=min(hay.size, 5_000))
    vocabulary = some.vocabulary()
    began = time.process_time()
    entries = list(some.entries(vocabulary.average_length))
    made = time.process_time()
    for entry in entries:
        vocabulary.weigh(entry.passage)
    weighed = time.process_time()
    return {
        "noise_us": (made - began) / len(entries) * 1e6,
        "weigh_us": (weighed - made) / len(entries) * 1e6,
    }


def ask(folder: Path, rows: list[dict[str, Any]], started: float) -> dict[str, Any]:
    return asyncio.run(_ask(folder, rows, started))


async def _ask(folder: Path, rows: list[dict[str, Any]], started: float) -> dict[str, Any]:
    began = time.perf_counter()
    index, opened_ms, vocabulary_ms = await _open(folder)
    await search(Question(rows[0]["question"]), index)
    first_ms = (time.perf_counter() - began) * 1000
    from_start_s = time.time() - started
    cold = [await _timed(row, index) for row in rows]
    busy = time.process_time()
    warm = [await _timed(row, index) for row in rows]
    busy = time.process_time() - busy
    return {
        "open_ms": opened_ms,
        "vocabulary_load_ms": vocabulary_ms,
        "first_result_ms": first_ms,
        "process_start_to_first_result_s": from_start_s,
        "cold_search_ms": _spread([search_ms for _, search_ms in cold]),
        "warm_total_ms": _spread([total for total, _ in warm]),
        "warm_cpu_ms": busy / len(rows) * 1000,
        "warm_search_ms": _spread([search_ms for _, search_ms in warm]),
        "filtered_search_ms": _spread(
            [(await _timed(row, index, {"language": "en"}))[1] for row in rows[:50]]
        ),
        "rss_mb": _rss_mb(),
        "anonymous_rss_mb": _rss_mb("RssAnon"),
        "peak_rss_mb": _rss_mb("VmHWM"),
    }


async def _open(folder: Path) -> tuple[SearchContext, float, float]:
    began = time.perf_counter()
    store = await EmbeddedGenerationStore(folder, dimension=DIMENSION).open("generation")
    opened = time.perf_counter()
    vocabulary = Vocabulary.from_bytes((folder / "vocabulary").read_bytes())
    loaded = time.perf_counter()
    embedder = LocalEmbedder(EMBEDDER.partition(":")[2])
    index = SearchContext("generation", embedder, store, vocabulary, MEASURED[EMBEDDER])
    return index, (opened - began) * 1000, (loaded - opened) * 1000


async def _timed(
    row: dict[str, Any], index: SearchContext, filters: dict[str, Any] | None = None
) -> tuple[float, float]:
    began = time.perf_counter()
    findings = await search(Question(row["question"], filters=filters or {}), index)
    return (time.perf_counter() - began) * 1000, findings.search_ms


def judge(hay: Haystack, folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return asyncio.run(_judge(hay, folder, rows))


async def _judge(hay: Haystack, folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the search with an exact one: recall, and effect on the metrics."""
    index, _, _ = await _open(folder)
    files = EntryFiles(folder / "generation" / "entries", dimension=DIMENSION)
    vectors = await index.embedder.embed([row["question"] for row in rows], role="query")
    limit = breadth(hay.size)
    by_passage, by_unit = _exact(files, vectors, limit)
    right = [_right(hay, row) for row in rows]
    ranks: dict[str, list[float]] = {"search": [], "exact": []}
    shares: dict[str, list[float]] = {"by_passage": [], "by_unit": [], "same_first": []}
    for number, (row, vector) in enumerate(zip(rows, vectors, strict=True)):
        asked = index.vocabulary.ask(row["question"])
        found = await index.store.find(vector, asked, limit=limit, filters={})
        ids = {one.passage_id for one in found}
        exact = {one.passage_id: one for one in found}
        for rows_of_way, way in ((by_passage, "by_passage"), (by_unit, "by_unit")):
            places = rows_of_way[number].tolist()
            best = files.candidates(places, files.cosines(places, vector))
            shares[way].append(sum(one.passage_id in ids for one in best) / len(best))
            exact.update({one.passage_id: one for one in best})
        first = {
            "search": _ranking(found, asked, index),
            "exact": _ranking(list(exact.values()), asked, index),
        }
        shares["same_first"].append(float(first["search"][:1] == first["exact"][:1]))
        for name, ranking in first.items():
            ranks[name].append(_rank(ranking, right[number]))
    return {
        "found_of_nearest_passages": float(np.mean(shares["by_passage"])),
        "found_of_nearest_units": float(np.mean(shares["by_unit"])),
        "same_first_hit": float(np.mean(shares["same_first"])),
        **{name: _quality(values) for name, values in ranks.items()},
    }


def _exact(files: EntryFiles, vectors: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each question the nearest rows by passage and by best unit, exactly."""
    kept: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    empty = (np.full((len(vectors), 0), 0.0, np.float32), np.zeros((len(vectors), 0), np.int64))
    for start in range(0, len(files), BATCH):
        rows = range(start, min(len(files), start + BATCH))
        cosines = [way.T for way in files.cosines(rows, vectors)]
        for way, more in enumerate(cosines):
            old, places = kept.get(way, empty)
            merged = np.concatenate([old, more], axis=1)
            numbers = np.concatenate([places, np.broadcast_to(np.array(rows), more.shape)], axis=1)
            best = np.argsort(-merged, axis=1, kind="stable")[:, :limit]
            kept[way] = (
                np.take_along_axis(merged, best, axis=1),
                np.take_along_axis(numbers, best, axis=1),
            )
    return kept[0][1], kept[1][1]


def _ranking(
    candidates: Sequence[Candidate], asked: dict[int, float], index: SearchContext
) -> list[str]:
    merits = {
        one.passage_id: index.calibration.fusion_score(
            Signals(one.cosine, one.unit_cosine, *term_evidence(asked, one.terms))
        )
        for one in candidates
    }
    return sorted(merits, key=lambda passage_id: (-merits[passage_id], passage_id))


def _right(hay: Haystack, row: dict[str, Any]) -> set[str]:
    heading = row.get("heading") or row.get("section")
    return {
        real.passage.id
        for real in hay.real[: hay.hidden]
        if str(row["file"]).endswith(real.passage.place.file)
        and heading in (*real.passage.place.section, real.passage.place.heading)
    }


def _rank(ranking: Sequence[str], right: set[str]) -> float:
    return next((n for n, found in enumerate(ranking, 1) if found in right), float("inf"))


def _quality(ranks: Sequence[float]) -> dict[str, float]:
    return {
        "hit@1": float(np.mean([rank == 1 for rank in ranks])),
        "hit@5": float(np.mean([rank <= 5 for rank in ranks])),
        "MRR@10": float(np.mean([1 / rank if rank <= 10 else 0.0 for rank in ranks])),
    }


def catalog(hay: Haystack, folder: Path) -> dict[str, Any]:
    """Measure the SQL catalog: adding vectors, committing, reading back."""
    home = folder / "catalog"
    shutil.rmtree(home, ignore_errors=True)
    ledger = SqlCatalog(open_database(None, home), home)
    passages: list[Passage] = []
    known: set[str] = set()  # two passages that came out alike share their vectors
    entries = hay.entries(1.0)
    began = time.perf_counter()
    while some := list(itertools.islice(entries, 32)):  # as an ingest does
        passages += [entry.passage for entry in some]
        stored = {
            key: StoredVectors(key, entry.vector, entry.unit_vectors)
            for entry in some
            if (key := vector_key(entry.passage)) not in known
        }
        known |= stored.keys()
        ledger.add_vectors(EMBEDDER, list(stored.values()))
    added = time.perf_counter()
    packed = (folder / "vocabulary").read_bytes()
    generation = Generation("0" * 32, EMBEDDER, DIMENSION, hay.size, "", packed)
    ledger.commit(passages, generation, keep_vectors=known)
    committed = time.perf_counter()
    ledger.passages()
    read = time.perf_counter()
    current = [_milliseconds(ledger.current) for _ in range(20)]
    figures = {
        "passages": hay.size,
        "add_vectors_per_s": hay.size / (added - began),
        "commit_s": committed - added,
        "read_passages_s": read - committed,
        "current_ms": _spread(current),
        "peak_rss_mb": _rss_mb("VmHWM"),
        "disk_gb": _disk_gb(home),
    }
    shutil.rmtree(home)
    return figures


def _milliseconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def _spread(times: Sequence[float]) -> dict[str, float]:
    return {f"p{q}": float(np.percentile(times, q)) for q in (50, 95)}


def _rss_mb(name: str = "VmRSS") -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _disk_gb(folder: Path) -> float:
    return sum(file.stat().st_blocks for file in _files(folder)) * 512 / 1e9


def _forget(folder: Path) -> None:
    """Drop the generation from the page cache, so that opening it reads the disk."""
    for path in _files(folder):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


# --- the run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    books: list[Path]
    questions: Path
    work: Path
    sizes: list[int]
    keep: bool

    @property
    def homes(self) -> list[Path]:
        return [self.work / f"home-{number}" for number in range(len(self.books))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", type=Path, action="append", required=True, dest="books")
    parser.add_argument("--questions", type=Path, required=True, help="about the first book")
    parser.add_argument("--work", type=Path, required=True, help="folder with gigabytes of space")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--keep", action="store_true", help="keep the generations in --work")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, default=0.0, help=argparse.SUPPRESS)
    given = vars(parser.parse_args())
    step, started = given.pop("step"), given.pop("started")
    options = Options(**given)
    if step:
        print(json.dumps(run_step(step, options, started)))
    else:
        run(options)


def run(options: Options) -> None:
    for docs, home in zip(options.books, options.homes, strict=True):
        library = build_book(load_settings({"home": home}), new=True)
        asyncio.run(library.ingest(read_book(docs)))
    figures = _known_figures()
    for size in options.sizes:
        folder = options.work / str(size)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        steps = {step: _in_process(step, size, options) for step in ("publish", "making")}
        _forget(folder)
        steps |= {step: _in_process(step, size, options) for step in ("ask", "judge")}
        if size == IN_CATALOG:
            figures["catalog"] = _in_process("catalog", size, options)
        figures["sizes"][str(size)] = steps
        write(figures)
        if not options.keep:
            shutil.rmtree(folder)


def _known_figures() -> dict[str, Any]:
    """Read the stored figures; sizes that are not measured again keep theirs."""
    known: dict[str, Any] = {"sizes": {}}
    return json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else known


def _in_process(step: str, size: int, options: Options) -> dict[str, Any]:
    print(f"{size}: {step} …", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--step", step, "--sizes", str(size)]
    command += [f"--book={book}" for book in options.books]
    command += ["--questions", str(options.questions), "--work", str(options.work)]
    command += ["--started", str(time.time())]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(_rounded(figures)), file=sys.stderr, flush=True)
    return figures


def run_step(step: str, options: Options, started: float) -> dict[str, Any]:
    (size,) = options.sizes
    folder = options.work / str(size)
    rows = _questions(options.questions)
    if step == "ask":  # with no more memory than a server would have
        return ask(folder, rows, started)
    hay = Haystack.of(options.homes, size)
    steps = {
        "publish": lambda: publish(hay, folder),
        "making": lambda: making(hay),
        "judge": lambda: judge(hay, folder, rows),
        "catalog": lambda: catalog(hay, folder),
    }
    return steps[step]()


def _questions(file: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    answerable = [row for row in rows if row["kind"] == "answerable"]
    return answerable[:: max(1, len(answerable) // ASKED)][:ASKED]


# --- the report -----------------------------------------------------------------------------------

PREAMBLE = """## Scale

The corpus consists of real passages repeated with noise, plus one unchanged book, about which
{asked} questions are asked. Every step runs in its own process. *Exact* compares every vector of
every unit; the search scans quantised passage vectors and compares only the units of the
candidates it finds ([decision 17](../docs/decisions/0017-large-books.md)).

```sh
python bench/scale.py --work bench/data/scale --questions bench/data/squad-minibook/qa.jsonl \\
  --book bench/data/squad-minibook/docs --book examples/physical-ai-book/docs
```
"""


def write(figures: dict[str, Any]) -> None:
    figures["sizes"] = dict(sorted(figures["sizes"].items(), key=lambda item: int(item[0])))
    FIGURES.write_text(json.dumps(_rounded(figures), indent=2) + "\n", "utf-8")
    text = RESULTS.read_text("utf-8")
    before, _, rest = text.partition("## Scale\n")
    _, following, after = rest.partition("\n## ")
    section = "\n".join([PREAMBLE.format(asked=ASKED), *_tables(figures)])
    RESULTS.write_text(before.rstrip() + "\n\n" + section + following + after, "utf-8")


def _tables(figures: dict[str, Any]) -> Iterator[str]:
    sizes = figures["sizes"]
    yield _line("passages", (f"{int(size):,}" for size in sizes))
    yield _line("---", ("---" for _ in sizes))
    for title, show in _ROWS.items():
        yield _line(title, (show(steps) for steps in sizes.values()))
    yield ""
    if "catalog" in figures:
        yield _CATALOG.format(**_flat(figures["catalog"]))


def _line(title: str, cells: Iterator[str]) -> str:
    return f"| {title} | {' | '.join(cells)} |"


def _pair(times: dict[str, float]) -> str:
    return f"{times['p50']:.1f} / {times['p95']:.1f}"


def _graded(quality: dict[str, float]) -> str:
    return " / ".join(f"{quality[name]:.3f}" for name in ("hit@1", "hit@5", "MRR@10"))


_ROWS = {
    "publishing, passages/s (per CPU second)": lambda s: (
        f"{s['publish']['passages_per_s']:,.0f} ({s['publish']['passages_per_cpu_s']:,.0f})"
    ),
    "CPU time per passage for generating the noise, µs": lambda s: (
        f"{s['making']['noise_us']:.0f} of {1e6 / s['publish']['passages_per_cpu_s']:.0f}"
    ),
    "peak memory of publishing, MB": lambda s: f"{s['publish']['peak_rss_mb']:,.0f}",
    "disk, GB": lambda s: f"{s['publish']['disk_gb']:.2f}",
    "opening the generation, ms (page cache cold)": lambda s: f"{s['ask']['open_ms']:.0f}",
    "reading the vocabulary, ms": lambda s: f"{s['ask']['vocabulary_load_ms']:.0f}",
    "process start to first result, s": lambda s: (
        f"{s['ask']['process_start_to_first_result_s']:.1f}"
    ),
    "first pass over the questions, search p50 / p95 ms": lambda s: _pair(
        s["ask"]["cold_search_ms"]
    ),
    "**warm, including question embedding, p50 / p95 ms**": lambda s: _pair(
        s["ask"]["warm_total_ms"]
    ),
    "warm, search alone, p50 / p95 ms": lambda s: _pair(s["ask"]["warm_search_ms"]),
    "warm, CPU time including embedding, mean ms": lambda s: f"{s['ask']['warm_cpu_ms']:.1f}",
    "warm, with a filter that matches everything, p50 / p95 ms": lambda s: _pair(
        s["ask"]["filtered_search_ms"]
    ),
    "peak memory of querying, MB (of which anonymous)": lambda s: (
        f"{s['ask']['peak_rss_mb']:,.0f} ({s['ask']['anonymous_rss_mb']:,.0f})"
    ),
    "hit@1 / hit@5 / MRR@10, exact": lambda s: _graded(s["judge"]["exact"]),
    "hit@1 / hit@5 / MRR@10, search": lambda s: _graded(s["judge"]["search"]),
    "recall of the nearest passages": lambda s: f"{s['judge']['found_of_nearest_passages']:.4f}",
    "recall of the nearest by unit": lambda s: f"{s['judge']['found_of_nearest_units']:.3f}",
    "same first hit as exact": lambda s: f"{s['judge']['same_first_hit']:.3f}",
    "words in the vocabulary (packed, MB)": lambda s: (
        f"{s['publish']['vocabulary_terms']:,} ({s['publish']['vocabulary_mb']:.1f})"
    ),
}

_CATALOG = """The catalog with {passages:,.0f} passages (SQLite): vectors are stored at \
{add_vectors_per_s:,.0f} passages/s, the
commit takes {commit_s:.1f} s, reading all passages back {read_passages_s:.1f} s, and looking up the
served generation {current_ms_p50:.1f} ms. Peak memory is {peak_rss_mb:,.0f} MB, disk \
{disk_gb:.2f} GB.
"""


def _flat(figures: dict[str, Any]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            flat |= {f"{name}_{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
