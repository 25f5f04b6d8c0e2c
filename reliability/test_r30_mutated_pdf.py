"""Any bytes can be read as a PDF file: pages or a refusal, no exception, no hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bythebook.ingestion.read_book import read_book
from reliability.pdf_mutations import mutated, seeds
from reliability.rows import Rows

_ROOT = Path(__file__).parents[1]
_THROUGH_THE_WORKER = 20  # files that are also read as a book is


def test_mutated_pdf_files(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R30",
        "Mutate PDF files",
        requirement="pages or a typed problem; 0 exceptions, crashes and hangs",
    )
    files = rows.count(2_000, 20_000)
    faults = _faults(files)
    faults += _faults_of_the_worker(tmp_path)
    row.record(
        f"{files:,} mutated files (bytes, lengths, spliced objects), {_THROUGH_THE_WORKER} of them "
        "also in a worker process each",
        "; ".join(faults) or "0 exceptions, crashes and hangs",
        passed=not faults,
    )


def _faults(files: int) -> list[str]:
    """Read the files in one process after the other; a new one goes on after a crash."""
    faults: list[str] = []
    number = 0
    while number < files and len(faults) < 10:
        command = [sys.executable, "-m", "reliability.pdf_mutations"]
        done = subprocess.run(
            [*command, str(number), str(files - number)],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # remarks of PDFium's bindings
            text=True,
            check=False,
        )
        lines = done.stdout.splitlines()
        faults += [line for line in lines if " " in line]
        if lines and lines[-1] == "end":
            break
        number = int(lines[-1].partition(" ")[0]) + 1 if lines else files
        faults.append(f"{number - 1} ended the process ({done.returncode})")
    return faults


def _faults_of_the_worker(folder: Path) -> list[str]:
    sources = seeds()
    faults = []
    for number in range(_THROUGH_THE_WORKER):
        file = folder / f"{number}.pdf"
        file.write_bytes(mutated(number, sources))
        book = read_book(file)
        if not book.pages and not any(problem.fatal for problem in book.problems):
            faults.append(f"{number} has no pages and no problem")
    return faults
