"""Reading a book: pages, their order and URLs, and the problems reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import ParsedBook, ParsedPage, SiteOptions, read_book
from tests.sources.book_files import CONFIG, write_files


def page(book: ParsedBook, file: str) -> ParsedPage:
    return next(page for page in book.pages if page.file == file)


# --- which files, in which order ------------------------------------------------------------------


def test_drafts_partials_and_excluded_files_are_not_pages(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.md": "a",
            "_b.md": "b",
            "_c/d.md": "d",
            "e.txt": "e",
            "f.md": "---\ndraft: true\n---\nf",
            "g.md": "---\nunlisted: true\n---\ng",
            "h/i.md": "i",
            "__tests__/j.md": "j",
        },
    )
    book = read_book(tmp_path, SiteOptions(exclude=("h/**",)))
    assert [page.file for page in book.pages] == ["a.md"]
    assert {problem.file for problem in book.problems} == {"f.md", "g.md"}
    assert not any(problem.fatal for problem in book.problems)


def test_reading_order_follows_positions_then_numbers_then_names(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "intro.md": "---\nsidebar_position: 1\n---\nx",
            "10-last/b.md": "x",
            "10-last/a.md": "x",
            "2-second/z.md": "---\nsidebar_position: 1\n---\nx",
            "2-second/index.md": "---\nsidebar_position: 9\n---\nx",
            "2-second/02-two.md": "x",
            "named/_category_.json": '{"position": 3, "label": "Named part"}',
            "named/x.md": "x",
            "appendix.md": "x",
        },
    )
    assert [page.file for page in read_book(tmp_path).pages] == [
        "intro.md",
        "named/x.md",
        "2-second/index.md",
        "2-second/z.md",
        "2-second/02-two.md",
        "10-last/a.md",
        "10-last/b.md",
        "appendix.md",
    ]


# --- titles, modules, metadata --------------------------------------------------------------------


def test_titles_match_docusaurus(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.md": "---\ntitle: From front matter\n---\n# Heading\n",
            "b.md": "import x from 'y';\n\n# `Code` heading\n\ntext",
            "03-c.md": "no heading",
            "d.md": "text\n\n# Late heading",
            "e.md": "---\ntitle: 2021\n---\n",
        },
    )
    book = read_book(tmp_path)
    titles = {page.file: page.title for page in book.pages}
    assert titles == {
        "a.md": "From front matter",
        "b.md": "Code heading",
        "03-c.md": "c",
        "d.md": "d",
        "e.md": "2021",
    }


def test_modules_and_chapters_come_from_front_matter_then_folders_then_the_title(
    tmp_path: Path,
) -> None:
    write_files(
        tmp_path,
        {
            "root.md": "# Root page\n\ntext",
            "01-ros_basics/02-node-graph/a.md": "# Page\n\ntext",
            "02-sim/_category_.yml": "label: 'Module 2: Simulation'\n",
            "02-sim/b.md": "# Page\n\ntext",
            "03-x/index.md": "---\ntitle: Named by its index\n---\ntext",
            "03-x/c.md": "---\nmodule: M\nchapter: 7\n---\ntext",
        },
    )
    book = read_book(tmp_path)
    places = {page.file: page.passages[0].place for page in book.pages}
    named = {file: (place.module, place.chapter) for file, place in places.items()}
    assert named == {
        "root.md": ("Root page", "Root page"),
        "01-ros_basics/02-node-graph/a.md": ("Ros basics", "Node graph"),
        "02-sim/b.md": ("Module 2: Simulation", "Page"),
        "03-x/index.md": ("Named by its index", "Named by its index"),
        "03-x/c.md": ("M", "7"),
    }


def test_metadata_comes_from_front_matter_and_the_letters_of_the_text(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.md": "---\nweek: Week 3\ndifficulty: hard\nkeywords: [ROS 2, 7]\n---\ntext",
            "b.md": "روبوٹ چلتا ہے اور دیکھتا ہے۔",
            "c.md": "机器人会走。",
            "d.md": "---\nlanguage: de\nkeywords: eins, zwei\n---\nText",
        },
    )
    found = {page.file: page.passages[0].metadata for page in read_book(tmp_path).pages}
    assert (found["a.md"].week, found["a.md"].difficulty) == (3, "hard")
    assert found["a.md"].keywords == ("ROS 2", "7")
    assert [found[file].language for file in ("a.md", "b.md", "c.md", "d.md")] == [
        "en",
        "ur",
        "zh",
        "de",
    ]
    assert found["d.md"].keywords == ("eins", "zwei")


def test_language_is_detected_if_the_site_has_no_locale(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"docusaurus.config.js": "export default {url: ''};", "docs/a.md": "روبوٹ چلتا ہے۔"},
    )
    assert read_book(tmp_path).passages[0].metadata.language == "ur"
    assert read_book(tmp_path, SiteOptions(locale="ps")).passages[0].metadata.language == "ps"


# --- translations and partials --------------------------------------------------------------------


def test_translated_pages_are_part_of_the_book(tmp_path: Path) -> None:
    folder = "i18n/ur/docusaurus-plugin-content-docs/current"
    write_files(
        tmp_path,
        {
            "docusaurus.config.js": CONFIG,
            "docs/01-a/b.md": "# B\n\ntext",
            f"{folder}/01-a/b.md": "# ب\n\nمتن",
            "i18n/fr/docusaurus-plugin-content-docs/current/c.md": "# not built",
        },
    )
    book = read_book(tmp_path / "docs")
    assert [page.file for page in book.pages] == ["01-a/b.md", "i18n/ur/01-a/b.md"]
    assert page(book, "i18n/ur/01-a/b.md").url.startswith("https://book.example/base/ur/")
    assert book.passages[1].metadata.language == "ur"


def test_partials_are_inlined_from_the_page_s_folder_and_from_the_site(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "docusaurus.config.js": CONFIG,
            "docs/a/p.mdx": "import X from './_x.mdx';\nimport Y from '@site/docs/_y.md';\n\n"
            "<X />\n\n<Y who='you' />\n",
            "docs/a/_x.mdx": "import Z from '../_z.mdx';\n\nFrom x. <Z/>\n",
            "docs/_z.mdx": "From z.",
            "docs/_y.md": "---\na: 1\n---\nHello {props.who}.",
        },
    )
    (only,) = read_book(tmp_path).pages
    assert only.passages[0].text == "From x.\n\nFrom z.\n\nHello you."
    assert only.missing == ()


def test_recursive_partials_terminate(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.mdx": "import X from './_x.mdx';\n\n<X/><X/>\n\nend",
            "_x.mdx": "import X from './_x.mdx';\n\nagain\n\n<X/>\n<X/>\n",
        },
    )
    assert "end" in read_book(tmp_path).passages[-1].text


def test_raw_imports_are_shown_as_code(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.mdx": "import code from '!!raw-loader!./x.py';\n\n"
            "<CodeBlock language='py'>{code}</CodeBlock>\n",
            "x.py": "if a < b:\n    pass\n",
        },
    )
    assert read_book(tmp_path).passages[0].text == "```py\nif a < b:\n    pass\n```"


# --- formats --------------------------------------------------------------------------------------


def test_a_plain_folder_reads_md_as_commonmark_unless_it_is_plainly_mdx(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.md": "the set {0,1} and <x> stay",
            "b.md": "import Tabs from '@theme/Tabs';\n\n{/* c */}\n\ntext",
            "c.mdx": "one {/* c */} two",
        },
    )
    assert [p.text for p in read_book(tmp_path).passages] == [
        "the set {0,1} and <x> stay",
        "text",
        "one two",
    ]


def test_the_format_can_be_set_for_the_site_and_for_a_page(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "docusaurus.config.js": "export default {markdown: {format: 'detect'}, url: ''};",
            "docs/a.md": "{a}",
            "docs/b.mdx": "b {'x'}",
            "docs/c.md": "---\nmdx:\n  format: mdx\n---\nc {'x'}",
        },
    )
    assert [p.text for p in read_book(tmp_path).passages] == ["{a}", "b x", "c x"]
    forced = read_book(tmp_path, SiteOptions(markdown_format="md"))
    assert forced.passages[1].text == "b {'x'}"


# --- what goes wrong ------------------------------------------------------------------------------


def test_missing_or_empty_folder_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as missing:
        read_book(tmp_path / "nowhere")
    assert missing.value.hint
    with pytest.raises(SourceError) as empty:
        read_book(tmp_path)
    assert "no pages" in empty.value.message


def test_unreadable_files_are_reported_and_the_others_read(tmp_path: Path) -> None:
    docs = write_files(
        tmp_path / "docs",
        {
            "good.md": "# Good\n\ntext",
            "alias.md": "---\na: &x [1]\nb: *x\n---\ntext",
            "js.md": "---js\nalert(1)\n---\ntext",
            "broken.md": "---\ntitle: x\nother: : y\n---\ntext",
        },
    )
    (docs / "latin.md").write_bytes(b"line\nna\xefve")
    (docs / "nul.md").write_bytes(b"a\n\nb\0c")
    (docs / "huge.md").write_bytes(b"word " * (5 * 1024 * 1024 // 5))
    write_files(tmp_path, {"secret.md": "secret", "folder/inside.md": "secret"})
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    (docs / "linked").symlink_to(tmp_path / "folder")
    (docs / "loop").symlink_to(docs)
    os.mkfifo(docs / "pipe.md")
    book = read_book(docs)
    assert [page.file for page in book.pages] == ["good.md"]
    reasons = {problem.file: (problem.line, problem.reason) for problem in book.problems}
    assert all(problem.fatal for problem in book.problems)
    assert reasons["alias.md"] == (3, "YAML aliases (*name) are not allowed")
    assert reasons["js.md"][0] == 1
    assert reasons["broken.md"][0] == 3
    assert reasons["latin.md"] == (2, "not valid UTF-8")
    assert reasons["nul.md"] == (3, "holds a NUL byte")
    assert reasons["huge.md"] == (None, "larger than 2048 KiB")
    assert "symbolic link" in reasons["link.md"][1]
    assert "symbolic link" in reasons["linked"][1]
    assert "symbolic link" in reasons["loop"][1]
    assert reasons["pipe.md"] == (None, "not a regular file")


def test_nothing_outside_the_root_is_imported(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "secret.mdx": "secret",
            "docs/a.mdx": "import A from '../secret.mdx';\nimport B from './_link.mdx';\n"
            "import C from '@site/../secret.mdx';\nimport d from '!!raw-loader!../secret.mdx';\n\n"
            "open <A/> <B/> <C/> {d}",
        },
    )
    (tmp_path / "docs" / "_link.mdx").symlink_to(tmp_path / "secret.mdx")
    assert "secret" not in read_book(tmp_path / "docs").passages[0].text


def test_two_pages_with_the_same_url_are_reported(tmp_path: Path) -> None:
    write_files(tmp_path, {"a/index.md": "x", "a/README.md": "y"})
    assert any("same URL" in problem.reason for problem in read_book(tmp_path).problems)


# --- the same everywhere --------------------------------------------------------------------------


def test_on_page_is_called_for_each_page(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "x", "b.md": "y"})
    seen: list[str] = []
    read_book(tmp_path, on_page=lambda page: seen.append(page.file))
    assert seen == ["a.md", "b.md"]


def test_ids_are_independent_of_path_line_ends_bom_and_hash_seed(tmp_path: Path) -> None:
    files = {
        "a/b.md": "# T\n\nText.\n\n## H\n\n- x\n- y\n",
        "c.mdx": "<B>z</B>\n\n```\ncode\n```\n",
    }
    one = write_files(tmp_path / "one", files)
    two = write_files(tmp_path / "elsewhere" / "two", {})
    for name, text in files.items():
        (two / name).parent.mkdir(parents=True, exist_ok=True)
        (two / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    ids = [passage.id for passage in read_book(one).passages]
    assert [passage.id for passage in read_book(two).passages] == ids
    program = (
        "import json, sys; from pathlib import Path; "
        "from bythebook.ingestion.read_book import read_book; "
        "print(json.dumps([p.id for p in read_book(Path(sys.argv[1])).passages]))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", program, str(one)],
            capture_output=True,
            check=True,
            env=environment,
        )
        assert json.loads(done.stdout) == ids


def test_invisible_characters_are_removed(tmp_path: Path) -> None:
    urdu = "یہ\u200cاں"
    text = f"a\u202eb\u2066c\ufeffd\u200be\U000e0041f {urdu} क्\u200dष 👩\u200d🚀 x\u200dy"
    write_files(tmp_path, {"a.md": text})
    assert read_book(tmp_path).passages[0].text == f"abcdef {urdu} क्\u200dष 👩\u200d🚀 xy"


def test_deeply_nested_partials_are_still_split(tmp_path: Path) -> None:
    inside = "<details>\n" * 60 + "<P/>\n" + "</details>\n" * 60
    files = {f"_p{n}.mdx": f"import P from './_p{n + 1}.mdx';\n\n{inside}" for n in range(7)}
    write_files(tmp_path, {**files, "_p7.mdx": "end", "a.mdx": files["_p0.mdx"] + "\n\nlast"})
    assert "last" in read_book(tmp_path).passages[-1].text


def test_unclosed_elements_are_kept_and_reported_with_their_line(tmp_path: Path) -> None:
    page = (
        "# A\n\nBefore.\n\n<Card>\n\nInside the card.\n\n:::note\n\nInside the note.\n\nvector<T>\n"
    )
    write_files(
        tmp_path, {"docusaurus.config.js": CONFIG, "docs/a.mdx": page, "docs/b.md": "# B\n\nb\n"}
    )
    book = read_book(tmp_path / "docs")
    text = "\n".join(passage.text for passage in book.passages)
    for kept in ("<Card>", "Inside the card.", "Inside the note.", "vector<T>"):
        assert kept in text
    assert [(p.file, p.line, p.reason) for p in book.problems if not p.fatal] == [
        ("a.mdx", 5, "<Card> is never closed; it stays in the text as it is"),
        ("a.mdx", 9, ":::note is never closed; it takes in all that follows"),
        ("a.mdx", 13, "<T> is never closed; it stays in the text as it is"),
    ]


def test_halves_of_surrogate_pairs_do_not_reach_the_book(tmp_path: Path) -> None:
    docs = write_files(
        tmp_path / "docs",
        {
            "a.md": '---\ntitle: "Kettle \\uD83D\\uDE00 \\uD800"\n---\n\nA kettle boils water.',
            "pots/_category_.json": '{"label": "Pots \\ud83d"}',
            "pots/b.mdx": '# Pots\n\nA pot is {"a \\ud83d\\ude00 vessel \\udc00"} of clay.',
        },
    )
    (docs / os.fsdecode(b"\xff.md")).write_text("# Lid\n\nA lid covers the pot.")
    (docs / os.fsdecode(b"\xfe")).mkdir()
    book = read_book(docs)
    assert [page.file for page in book.pages] == ["a.md", "pots/b.mdx"]
    assert {problem.file: problem.reason for problem in book.problems} == dict.fromkeys(
        ("\ufffd.md", "\ufffd"), "the name is not valid UTF-8"
    )
    shown = repr(book.pages).encode("utf-8", "strict").decode()
    assert "Kettle \U0001f600 \ufffd" in shown
    assert "a \U0001f600 vessel" in shown
