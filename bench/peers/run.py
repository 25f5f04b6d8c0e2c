"""Peers in, figures out: every measure in a fresh process, each kept as soon as it is taken."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import figures
from peers.protocol import WARM_UP
from peers.rules import Judge, Row, copies, count_whole, moved, originals_of, read_rows
from peers.setting import HERE, OWN, CannotRun, Peer, Workshop, fingerprint

K = 10  # hits asked for, always
POLL_SECONDS = 0.5

Figures = dict[str, Any]


@dataclass(frozen=True)
class Material:
    """The books and the questions."""

    minibook: Path
    rows: list[Row]
    book: Path
    first_question: str
    large: int  # passages of the large book
    large_questions: int


FIRST_QUESTION = "What is a robotics workstation?"


def whole_material(data: Path) -> Material:
    squad = data / "squad-minibook"
    rows = read_rows([squad / "qa.jsonl", squad / "qa_offbook.jsonl"])
    book = data / "physical-ai-book/docs"
    return Material(squad / "docs", rows, book, FIRST_QUESTION, 10_000, 100)


def quick_material(data: Path, folder: Path) -> Material:
    """A few pages and questions: to see that everything runs, not to learn anything."""
    whole = whole_material(data)
    shutil.rmtree(folder, ignore_errors=True)
    pages = sorted({row.file for row in whole.rows if row.file})[:1]
    for name in pages:
        _copy(whole.minibook / name, folder / "minibook" / name)
    for path in sorted(whole.book.rglob("*.md"))[:1]:
        _copy(path, folder / "book" / path.relative_to(whole.book))
    rows = [row for row in whole.rows if row.file in pages][:12]
    rows += [row for row in whole.rows if row.kind == "off_book"][:4]
    return Material(folder / "minibook", rows, folder / "book", FIRST_QUESTION, 200, 5)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


class Worker:
    """One adapter in one fresh process."""

    def __init__(self, peer: Peer, workshop: Workshop) -> None:
        self._began = time.perf_counter()
        self._log = (workshop.folder / f"{peer.name}.log").open("a")
        self._process = subprocess.Popen(
            [str(workshop.python(peer)), "-m", f"peers.adapters.{peer.name}"],
            env=workshop.environment(),
            cwd=workshop.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )
        self.variants: list[str] = self.read()["variants"]
        self.start_seconds = self.age

    @property
    def age(self) -> float:
        return time.perf_counter() - self._began

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._log.close()

    def send(self, what: str, **arguments: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()

    def do(self, what: str, **arguments: Any) -> Figures:
        self.send(what, **arguments)
        return self.read()

    def ask(self, questions: Sequence[str], variant: str) -> Figures:
        return self.do("ask", questions=list(questions), k=K, variant=variant)

    def read(self) -> Figures:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise CannotRun(f"An adapter ended early; see {self._log.name}.")
        answer: Figures = json.loads(line)
        return answer


class Bench:
    """The measures of one peer, in order. Whatever was measured before is not measured again."""

    def __init__(self, workshop: Workshop, material: Material, results: Path) -> None:
        self._workshop = workshop
        self._material = material
        self._results = results
        self._homes = results / "homes"
        self._starts: list[float] = []  # of the processes of the measure being taken

    def measure(self, peer: Peer) -> Figures:
        steps: dict[str, Callable[[Peer], Figures]] = {
            "install": self._workshop.footprint,
            "minibook": self._minibook,
            "again": self._again,
            "cold": self._cold,
            "book": self._book_with_a_reader if peer.own else self._book,
            "large": self._large,
        }
        return {name: self._once(peer, name, step) for name, step in steps.items()}

    def _once(self, peer: Peer, name: str, step: Callable[[Peer], Figures]) -> Figures:
        path, key = self._path(peer, name), self._key(peer)
        if path.is_file():
            kept: Figures = json.loads(path.read_text("utf-8"))
            if kept["key"] == key:
                return kept
        began = time.perf_counter()
        print(f"{peer.title}: {name} …", end=" ", flush=True, file=sys.stderr)
        self._starts.clear()
        taken = {"key": key, **step(peer)}
        taken["start_seconds"] = list(self._starts)
        taken["took_seconds"] = time.perf_counter() - began
        print(f"{taken['took_seconds']:.0f} s", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(taken, indent=1), "utf-8")
        return taken

    def _path(self, peer: Peer, name: str) -> Path:
        return self._results / peer.name / f"{name}.json"

    def _key(self, peer: Peer) -> str:
        """Measures are as old as the code that took them and the code they were taken of."""
        ours = [HERE / name for name in ("protocol.py", "rules.py", "run.py")]
        adapter = HERE / "adapters" / f"{peer.name}.py"
        return fingerprint([*ours, adapter])[:12] + self._workshop.print_of(peer)[:12]

    def _home(self, peer: Peer, name: str) -> Path:
        return self._homes / f"{peer.name}-{name}"

    def _empty_home(self, peer: Peer, name: str) -> Path:
        home = self._home(peer, name)
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        return home

    def _worker(self, peer: Peer) -> Worker:
        worker = Worker(peer, self._workshop)
        self._starts.append(worker.start_seconds)
        return worker

    # --- the measures -------------------------------------------------------------------------

    def _minibook(self, peer: Peer) -> Figures:
        home, rows = self._empty_home(peer, "minibook"), self._material.rows
        judge = Judge(self._material.minibook)
        with self._worker(peer) as worker:
            ingested = worker.do("ingest", docs=str(self._material.minibook), home=str(home))
            chunks = len(worker.do("chunks")["chunks"])
            variants = {}
            for variant in worker.variants:
                worker.ask([row.question for row in rows[:WARM_UP]], variant)
                told = worker.ask([row.question for row in rows], variant)
                variants[variant] = {
                    **figures.of_times(told["ms"]),
                    **figures.of_answers(rows, told["answers"], judge),
                }
        return {"ingest": ingested, "chunks": chunks, "variants": variants}

    def _again(self, peer: Peer) -> Figures:
        with self._worker(peer) as worker:
            home = self._home(peer, "minibook")
            ingested = worker.do("ingest", docs=str(self._material.minibook), home=str(home))
            return {"ingest": ingested, "chunks": len(worker.do("chunks")["chunks"])}

    def _cold(self, peer: Peer) -> Figures:
        question = self._material.rows[0].question
        variants = {}
        for variant in json.loads(self._path(peer, "minibook").read_text("utf-8"))["variants"]:
            with self._worker(peer) as worker:
                worker.do("open", home=str(self._home(peer, "minibook")))
                told = worker.ask([question], variant)
                variants[variant] = {"seconds": worker.age, "peak_mb": told["peak_mb"]}
        return {"variants": variants}

    def _book(self, peer: Peer) -> Figures:
        """From an empty folder to the first answer, in one process."""
        home, docs = self._empty_home(peer, "book"), self._material.book
        with self._worker(peer) as worker:
            ingested = worker.do("ingest", docs=str(docs), home=str(home))
            finished = worker.age
            worker.ask([self._material.first_question], worker.variants[0])
            first_answer = worker.age
            return {
                "ingest": ingested,
                "first_answer_seconds": first_answer,
                "finished_seconds": finished,
                **self._fences(worker),
            }

    def _book_with_a_reader(self, peer: Peer) -> Figures:
        """The same for a system that serves while it ingests: a reader asks from outside."""
        home, docs = self._empty_home(peer, "book"), self._material.book
        with self._worker(peer) as worker, ThreadPoolExecutor(max_workers=1) as pool:
            worker.send("ingest", docs=str(docs), home=str(home))
            ingest = pool.submit(lambda: (worker.read(), worker.age))
            first_answer = self._ask_until_answered(peer, home, worker, ingest)
            ingested, finished = ingest.result()
            return {
                "ingest": ingested,
                "first_answer_seconds": first_answer,
                "finished_seconds": finished,
                **self._fences(worker),
            }

    def _ask_until_answered(
        self, peer: Peer, home: Path, worker: Worker, ingest: Future[Any]
    ) -> float:
        """The command line asks in a process of its own each time, as a reader would."""
        door = self._workshop.python(peer).with_name(peer.name)
        command = [str(door), "ask", self._material.first_question, "--home", str(home)]
        while True:
            was_done = ingest.done()
            asked = subprocess.run(
                command, env=self._workshop.environment(), capture_output=True, check=False
            )
            if asked.returncode == 0:
                return worker.age
            if was_done:
                raise CannotRun(f"{peer.title} does not answer the first question: {asked}")
            time.sleep(POLL_SECONDS)

    def _fences(self, worker: Worker) -> Figures:
        docs = self._material.book
        pages = {
            path.relative_to(docs).as_posix(): path.read_text("utf-8")
            for path in docs.rglob("*.md")
        }
        chunks = worker.do("chunks")["chunks"]
        whole, total = count_whole(pages, chunks)
        return {"chunks": len(chunks), "fences_whole": whole, "fences": total}

    def _large(self, peer: Peer) -> Figures:
        chunks, vectors = self._large_book()
        home = self._empty_home(peer, "large")
        answerable = [row.question for row in self._material.rows if row.kind == "answerable"]
        questions = answerable[: self._material.large_questions]
        with self._worker(peer) as worker:
            filled = worker.do("fill", chunks=str(chunks), vectors=str(vectors), home=str(home))
            variants = {}
            for variant in worker.variants:
                worker.ask(answerable[-WARM_UP:], variant)
                variants[variant] = figures.of_times(worker.ask(questions, variant)["ms"])
        shutil.rmtree(home, ignore_errors=True)
        return {"filled": filled, "variants": variants}

    def _large_book(self) -> tuple[Path, Path]:
        """Made once for everyone."""
        chunks, vectors = self._results / "large.jsonl", self._results / "large.f32"
        if not vectors.is_file():
            originals = [text for _, text in originals_of(self._material.minibook)]
            with Worker(OWN, self._workshop) as worker:
                rows = worker.do("embed", texts=originals)["vectors"]
            made = list(copies(self._material.minibook, self._material.large))
            chunks.write_text("".join(json.dumps(chunk) + "\n" for _, chunk in made), "utf-8")
            vectors.write_bytes(moved([rows[original] for original, _ in made]).tobytes())
        return chunks, vectors
