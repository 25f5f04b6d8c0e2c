"""``bythebook chat`` on a terminal, from a pipe and with --json."""

import json
import re
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from bythebook.cli.main import app
from bythebook.cli.output import printable, shortened
from bythebook.cli.printer import Page
from bythebook.errors import NotFound, NotIngested
from bythebook.refusals import Refusal, RefusalType, Topic
from bythebook.types import (
    Answer,
    Citation,
    Evidence,
    Mark,
    MarkKind,
    Place,
    Question,
    Reply,
    Sentence,
    Timings,
)
from tests.cli.terminal import Terminal, terminal
from tests.support.samples import ROOT, small_book

PROGRAM = str(Path(sys.executable).with_name("bythebook"))
BOILS = "A kettle boils water at 100 degrees Celsius."
WHEN = "At how many degrees does a kettle boil water?"
THREAD = re.compile(r"bythebook chat --thread (\S+)")


def pipe(home: Path, *lines: str, options: tuple[str, ...] = ()) -> Result:
    """Standard input and output that are no terminal."""
    given = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    return CliRunner().invoke(app, ["chat", "--home", str(home), *options], input=given)


# --- at a terminal --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def talked(small_home: Path) -> Iterator[Terminal]:
    """A whole conversation, command by command."""
    with terminal([PROGRAM, "chat", "--home", str(small_home)]) as screen:
        screen.wait_for("› ")
        for line, answer in (
            (WHEN, "confidence"),
            ("/sources 1", "text=A%20kettle"),
            ("/sources 7", "Use 1 to 1."),
            ("/select", "an empty line ends it"),
        ):
            screen.line(line)
            screen.wait_for(answer)
        screen.type("A kite flies because\nthe wind pushes it upwards.\n\n")
        screen.wait_for("“A kite flies because th…” › ")
        for line, answer in (
            (WHEN, "The selected text does not contain this information."),
            ("What makes a kite fly?", "confidence"),
            ("/select off", "Questions are now about the whole book."),
            ("How do I train GPT-4?", "does not contain sufficient information"),
            ("/history", "› How do I train GPT-4?"),
            ("/nonsense", "There is no command /nonsense. /help lists them."),
            ("/help", "leave (also Ctrl+D)"),
        ):
            screen.line(line)
            screen.wait_for(answer)
        assert screen.leave() == 0
        yield screen


def test_an_answer_is_followed_by_its_numbered_source(talked: Terminal) -> None:
    answer = talked.text[talked.text.index(WHEN) : talked.text.index("/sources 1")]
    assert f"  {BOILS} It switches itself off by means of a " in answer
    assert "strip.\n  [1]\n" in answer or "strip. [1]\n" in answer
    assert "  Welcome › Kettles\n" in answer
    assert "/docs/intro#kettles\n" in answer
    assert f"  [1] “{BOILS} It switches" in answer


def test_markers_and_urls_link_to_the_quoted_text(talked: Terminal) -> None:
    links = re.findall(r"\x1b\]8;[^;]*;([^\x1b]+)\x1b\\\x1b?[^\x1b]*", talked.raw)
    assert any("#kettles:~:text=A%20kettle" in link for link in links)


def test_a_pasted_passage_restricts_questions_and_stays_out_of_the_history(
    talked: Terminal,
) -> None:
    about = talked.text[talked.text.index("an empty line ends it") :]
    assert "[1] “A kite flies because the wind pushes it upwards.”" in about
    assert "Selected text\n" in about


def test_the_command_printed_on_exit_resumes_the_thread(small_home: Path, talked: Terminal) -> None:
    thread = THREAD.findall(talked.text)[-1]
    with terminal([PROGRAM, "chat", "--home", str(small_home), "--thread", thread]) as screen:
        screen.wait_for("Last question: How do I train GPT-4?")
        screen.wait_for("› ")
        screen.type("\x1b[A")  # the arrow brings the last question back, as if typed here
        screen.wait_for("How do I train GPT-4?")
        screen.type("\x15/his\t")  # the rest of a command is filled in
        screen.wait_for("/history")
        screen.line("")
        screen.wait_for(BOILS)
        screen.wait_for("› How do I train GPT-4?")
        screen.line("/threads")
        screen.wait_for("(this one)")
        assert screen.leave() == 0


def test_ctrl_c_stops_an_answer_and_not_the_chat(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.cli.slow_chat", str(small_book(tmp_path / "docs"))]
    with terminal(command, PYTHONPATH=str(ROOT)) as screen:
        screen.wait_for("› ")
        screen.line("What makes a kite fly?")
        screen.wait_for("the wind pushes it upwards.")  # before the draft has ended
        screen.type("\x03")
        screen.wait_for("Stopped; nothing was saved.")
        screen.wait_for("› ")
        screen.line("When does a kettle boil water?")
        screen.wait_for("The model did not answer. Ask again in a minute.")
        screen.wait_for("› ")
        screen.type("half a line")
        screen.wait_for("half a line")
        screen.insist("\x03", "› ")
        screen.line("/history")
        screen.wait_for("This thread has no messages yet.")
        assert screen.leave() == 0
        assert "To continue" not in screen.text


# --- from a pipe ----------------------------------------------------------------------------------


def test_piped_questions_are_answered_line_by_line_and_follow_up(small_home: Path) -> None:
    done = pipe(
        small_home, WHEN, "", "What makes a kite fly?", "And what keeps it from drifting away?"
    )
    assert done.exit_code == 0
    assert f"› {WHEN}\n{BOILS} It switches itself off" in done.stdout
    assert "The string keeps it from drifting away." in done.stdout.rpartition("› And what")[2]
    assert "\x1b" not in done.stdout


def test_the_exit_code_is_the_highest_of_all_lines(small_home: Path) -> None:
    assert pipe(small_home, WHEN, "How do I train GPT-4?", "/quit", "/nonsense").exit_code == 1
    done = pipe(small_home, "/nonsense", "\udcff kettle", WHEN)
    assert done.exit_code == 2
    assert "There is no command /nonsense." in done.stdout
    assert "contains invalid characters" in done.stdout
    assert BOILS in done.stdout  # an error is a line, not the end


def test_json_output_has_one_reply_per_line(small_home: Path) -> None:
    fly = "What makes a kite fly?"
    done = pipe(small_home, fly, "/new", "/bogus", "How do I train GPT-4?", options=("--json",))
    first, error, last = map(json.loads, done.stdout.splitlines())
    assert first["question"] == fly
    quote = first["citations"][0]["quote"]
    assert quote.startswith("A kite flies because the wind pushes it upwards.")
    assert error == {"error": "There is no command /bogus. /help lists them."}
    assert last["has_relevant_context"] is False
    assert first["thread"] != last["thread"]
    assert done.stderr == "Started a new thread.\n"
    follow_up = "And what keeps it from drifting away?"
    again = pipe(small_home, follow_up, options=("--thread", first["thread"]))
    assert "The string keeps it from drifting away." in again.stdout


def test_a_chat_that_cannot_start_raises_the_reason(small_home: Path, tmp_path: Path) -> None:
    lost = "6f0f4ad4-9d0c-4f3e-8a55-000000000000"
    assert isinstance(pipe(tmp_path, WHEN).exception, NotIngested)
    assert isinstance(pipe(small_home, options=("--thread", lost)).exception, NotFound)
    short = pipe(small_home, options=("--selected-text", "kite")).exception
    assert "The selected text has 4 characters." in str(short)


# --- what a terminal is given ---------------------------------------------------------------------


def test_control_characters_are_removed() -> None:
    assert printable("a\x1b[31mb\x07\x9b2Jc\n\td\x00") == "a[31mb2Jc\n\td"
    assert shortened("one\ntwo \x1b three", 9) == "one two…"


def _page(width: int) -> tuple[Page, StringIO]:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    return Page(console), file


def _show(page: Page, *sentences: Sentence) -> None:
    place = Place("a.md", "Kites", "/a#b", "", "", ("Strings",))
    citation = Citation(1, "id", place, "Some \x1b[2Jquote.", "/a#b", "/a#b:~:text=x", 0.9)
    page.show(citation)
    for sentence in sentences:
        page.show(sentence)
    answer = Answer(sentences, (citation,), "fake")
    page.show(Reply(Question("?"), answer, Evidence(), Timings()))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_sentences_wrap_at_the_terminal_width(width: int) -> None:
    sentence = "Every kite has a string, which keeps it from drifting away. 风筝 پتنگ"
    words = sentence.split()
    page, file = _page(width)
    _show(page, Sentence(sentence, (1,)), Sentence("And a tail.", (1,)))
    answer = re.sub(r"\x1b\][^\\]*\\", "", file.getvalue()).partition("\n\n")[0]
    assert answer.split() == [*words, "[1]", "And", "a", "tail.", "[1]"]
    assert max(map(len, answer.splitlines())) <= min(width, 96)
    assert all(line.startswith("  ") for line in answer.splitlines())


def test_inline_markup_of_the_book_is_shown_on_a_terminal() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=80, color_system="standard")
    kinds = (MarkKind.STRONG, MarkKind.EMPHASIS, MarkKind.CODE)
    marks = (*(Mark(n, n + 1, kind) for n, kind in zip((0, 2, 4), kinds, strict=True)),)
    link = Mark(6, 10, MarkKind.LINK, "https://x.example/a")
    _show(Page(console), Sentence("a b c link [x](y)", (), marks=(*marks, link)))
    shown = file.getvalue()
    assert "\x1b[1ma\x1b[0m \x1b[3mb\x1b[0m \x1b[32mc\x1b[0m" in shown
    assert ";https://x.example/a\x1b\\" in shown
    assert "[x](y)" in shown


def test_a_refusal_lists_nearby_topics() -> None:
    page, file = _page(60)
    refusal = Refusal(RefusalType.LOW_RELEVANCE, (Topic("Kites › Strings", "/a#b"),))
    page.show(Reply(Question("?"), refusal, Evidence(), Timings()))
    assert refusal.text in " ".join(file.getvalue().split())
    assert "  Nearby, the book covers:\n    Kites › Strings\n" in file.getvalue()


def test_lists_and_code_keep_their_line_breaks() -> None:
    page, file = _page(60)
    code = "```python\nif wind:\n    fly()\n```"
    _show(
        page, Sentence("1. Cut.", (1,), ""), Sentence("2. Tie.", (1,), "\n"), Sentence(code, (1,))
    )
    shown = re.sub(r"\x1b\][^\\]*\\", "", file.getvalue())
    assert "  1. Cut. [1]\n  2. Tie. [1]\n" in shown
    assert re.search(r"^ {4}if wind: *\n {8}fly\(\) *\n {2}\[1\]$", shown, re.MULTILINE)
    assert "```" not in shown
    assert "\x1b[2J" not in shown
