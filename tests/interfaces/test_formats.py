"""Without the package bythebook-formats: each of its files is named with the command to install."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.source import SiteOptions
from bythebook.sources.registry import INSTALL_FORMATS
from tests.support.samples import SAMPLE_BOOK


@pytest.fixture
def core_alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import from a copy of the environment without the package."""
    installed, copy = Path(sysconfig.get_path("purelib")), tmp_path_factory.mktemp("copy")
    for each in installed.iterdir():
        if not each.name.startswith("bythebook_formats"):
            (copy / each.name).symlink_to(each)
    path = [str(copy) if Path(folder) == installed else folder for folder in sys.path]
    monkeypatch.setattr(sys, "path", path)


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize("name", ["a.pdf", "a.EPUB", "a.html", "a.ipynb"])
def test_a_file_of_another_format_names_the_command(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("text")
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(SourceError, match="needs the package bythebook-formats") as caught:
            read_book(path)
        assert caught.value.hint == INSTALL_FORMATS == 'pip install "bythebook[formats]"'


@pytest.mark.usefixtures("core_alone")
def test_a_jupyter_book_and_a_chosen_format_name_the_command(tmp_path: Path) -> None:
    (tmp_path / "_toc.yml").write_text("root: a\n")
    (tmp_path / "a.md").write_text("# Kites\n\nA kite flies.\n")
    for options in (SiteOptions(), SiteOptions(format="html")):
        with pytest.raises(SourceError, match="needs the package bythebook-formats"):
            read_book(tmp_path, options)
    assert read_book(tmp_path, SiteOptions(format="markdown")).passages


@pytest.mark.usefixtures("core_alone")
def test_in_a_folder_of_markdown_the_other_files_are_problems(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Kites\n\nA kite flies.\n")
    (tmp_path / "b.pdf").write_text("text")
    book = read_book(tmp_path)
    assert [page.title for page in book.pages] == ["Kites"]
    assert [(each.file, each.fatal) for each in book.problems] == [("b.pdf", True)]
    assert INSTALL_FORMATS in book.problems[0].reason


def test_a_book_of_markdown_loads_no_other_format(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Kites\n\nA kite flies: <math><mi>x</mi></math>.\n")
    for folder in (SAMPLE_BOOK / "docs", tmp_path):
        code = (
            "import pathlib, sys\n"
            "from bythebook.ingestion.read_book import read_book\n"
            f"assert read_book(pathlib.Path({str(folder)!r})).passages\n"
            "assert not {'lxml', 'pypdfium2', 'bythebook_formats'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
