"""``bythebook export --markdown``: files for assistants, written without a server."""

import json
from pathlib import Path

from bythebook.documents.markdown.files import broken_links, links_of
from tests.support.command import run


def test_book_is_written_as_markdown(small_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    done = run("export", "--markdown", str(out), "--home", str(small_home))
    assert done.returncode == 0, done.stderr
    written = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert written == ["docs/intro.md", "docs/workshop/building.md", "llms-full.txt", "llms.txt"]
    words = sum(len((out / name).read_text("utf-8").split()) for name in written[:2])
    assert done.stdout == f"4 files with {words} words in {out}.\n"
    assert list(links_of((out / "llms.txt").read_text("utf-8"))) == written[:2]
    assert broken_links(out) == []


def test_export_prints_json_and_can_be_repeated(small_home: Path, tmp_path: Path) -> None:
    arguments = ("export", "--markdown", str(tmp_path), "--home", str(small_home), "--json")
    first, second = run(*arguments), run(*arguments)
    assert first.returncode == second.returncode == 0
    result = json.loads(second.stdout)
    assert result == json.loads(first.stdout)
    assert result["folder"] == str(tmp_path)
    assert (result["files"], result["pages"], result["broken_links"]) == (4, 2, [])


def test_links_are_absolute_for_a_book_with_a_site(book_folder: Path, tmp_path: Path) -> None:
    home, out = str(tmp_path / "home"), tmp_path / "out"
    site = ("--site-url", "https://kites.example", "--base-url", "/book/")
    done = run("ingest", str(book_folder), "--home", home, *site)
    assert done.returncode == 0, done.stderr
    done = run("export", "--markdown", str(out), "--home", home, "--base-url", "/book/")
    assert done.returncode == 0, done.stderr
    assert list(links_of((out / "llms.txt").read_text("utf-8"))) == [
        "https://kites.example/book/docs/intro.md",
        "https://kites.example/book/docs/workshop/building.md",
    ]
    assert (out / "docs" / "intro.md").is_file()
    assert broken_links(out, base_url="/book/") == []


def test_page_path_that_leads_out_of_the_folder_is_written_inside(
    book_folder: Path, tmp_path: Path
) -> None:
    (book_folder / "out.md").write_text("---\nslug: /../../../out\n---\n# Out\n\nText.\n", "utf-8")
    home, out = str(tmp_path / "home"), tmp_path / "a" / "b" / "c"
    assert run("ingest", str(book_folder), "--home", home).returncode == 0
    done = run("export", "--markdown", str(out), "--home", home)
    assert done.returncode == 0, done.stderr
    found = [path for path in tmp_path.rglob("out*.md") if path.parent != book_folder]
    assert len(found) == 1
    assert found[0].is_relative_to(out)


def test_export_without_a_book_says_what_to_do(tmp_path: Path) -> None:
    home, out = str(tmp_path / "home"), tmp_path / "out"
    done = run("export", "--markdown", str(out), "--home", home)
    assert done.returncode == 2
    assert "bythebook ingest" in done.stderr
    assert not out.exists()


def test_invalid_folder_or_base_is_reported(small_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    done = run("export", "--markdown", str(file), "--home", str(small_home))
    assert done.returncode == 2
    assert "is not a folder" in done.stderr
    assert run("export", "--home", str(small_home)).returncode == 2
    other = ("--markdown", str(tmp_path / "out"), "--base-url", "/elsewhere/")
    done = run("export", *other, "--home", str(small_home))
    assert done.returncode == 1
    assert "no page below this --base-url" in done.stderr


def test_a_name_that_no_file_can_have_does_not_stop_the_export(tmp_path: Path) -> None:
    docs, home, out = tmp_path / "docs", str(tmp_path / "home"), tmp_path / "out"
    docs.mkdir()
    for number, slug in enumerate(("/a", "/a.md/b", "/" + "long" * 75, "/x\u202egnp")):
        page = f'---\nslug: "{slug}"\n---\n\n# Page {number}\n\nText of page {number}.\n'
        (docs / f"{number}.md").write_text(page)
    assert run("ingest", str(docs), "--home", home).returncode == 0
    done = run("export", "--markdown", str(out), "--home", home)
    assert done.returncode == 0, done.stderr
    assert len(list(links_of((out / "llms.txt").read_text("utf-8")))) == 4
    assert broken_links(out) == []
    assert not any("\u202e" in path.name for path in out.rglob("*"))
