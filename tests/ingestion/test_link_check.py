"""Detection of stored URLs that do not resolve."""

from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.integrity import lost_in_build, lost_in_sources
from tests.support.samples import read


def test_stored_urls_are_in_the_sources(book_folder: Path) -> None:
    book = read(book_folder)
    urls = [passage.place.url for passage in book.passages]
    assert lost_in_sources(urls, book.pages) == []
    assert lost_in_sources(["/docs/intro#gone"], book.pages) == ["/docs/intro#gone"]


def test_stored_urls_are_checked_against_a_built_site(tmp_path: Path) -> None:
    (tmp_path / "docs" / "my page").mkdir(parents=True)
    (tmp_path / "docs" / "my page" / "index.html").write_text('<h2 class="a" id="two">Two</h2>')
    (tmp_path / "docs" / "flat.html").write_text("<p>Flat</p>")
    base = "https://example.org/base/docs"
    right = [f"{base}/my%20page", f"{base}/my%20page/#two", f"{base}/flat"]
    wrong = [f"{base}/my%20page#three", f"{base}/gone"]
    assert lost_in_build([*right, *wrong], tmp_path) == sorted(wrong)


def test_folder_without_a_build_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="docusaurus build"):
        lost_in_build(["/docs/a"], tmp_path)
