"""The command line: output, exit codes and error messages."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bythebook.contracts import chat, envelope, plain, query
from bythebook.contracts.ask import AgentResponse
from tests.support.command import PROGRAM, ask, run, run_process
from tests.support.samples import SAMPLE_BOOK


def test_ingest_prints_the_ingest_result(book_folder: Path, tmp_path: Path) -> None:
    first = run_process("ingest", str(book_folder), "--home", str(tmp_path / "home"), "--json")
    result = json.loads(first.stdout)
    assert first.returncode == result["exit_code"] == 0
    assert result["files_processed"] == 2
    assert result["chunks_created"] == result["embedded"] == result["changed"] > 2
    assert result["errors"] == []
    assert result["coverage"] == 1
    second = run("ingest", str(book_folder), "--home", str(tmp_path / "home"), "--json")
    again = json.loads(second.stdout)
    assert (again["embedded"], again["changed"], again["removed"]) == (0, 0, 0)
    assert again["unchanged"] == result["chunks_created"]


def test_a_bad_file_is_named_and_the_others_are_ingested(book_folder: Path, tmp_path: Path) -> None:
    (book_folder / "broken.md").write_bytes(b"# Broken\n\n\xff\xfe not text\n")
    done = run("ingest", str(book_folder), "--home", str(tmp_path / "home"), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == result["exit_code"] == 1
    assert result["errors"][0].startswith("broken.md")
    assert result["chunks_created"] > 2


def test_ask_answers_with_sentences_of_the_book(small_home: Path) -> None:
    done = ask(small_home, "At how many degrees does a kettle boil water?", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert "A kettle boils water at 100 degrees Celsius." in answer["answer"]
    assert answer["has_relevant_context"] is True
    assert answer["refusal_type"] is None
    (first, *_) = answer["citations"]
    assert first["number"] == 1
    assert first["quote"].startswith("A kettle boils water at 100 degrees Celsius.")
    assert first["url"].endswith("/docs/intro#kettles")
    assert (first["filename"], first["section"]) == ("intro.md", "Kettles")
    assert 0.5 <= first["score"] <= 1
    assert answer["sources"][0]["url"] == first["url"]


@pytest.mark.loopback
@pytest.mark.parametrize("writer", ["openai:nobody", "agents:nobody"])
def test_ask_reports_the_fallback_writer(small_home: Path, writer: str) -> None:
    away = {"BYTHEBOOK_WRITER": writer, "BYTHEBOOK_MODEL_URL": "http://127.0.0.1:9/v1"}
    asked = "At how many degrees does a kettle boil water?"
    done = ask(small_home, asked, **away)
    assert done.returncode == 0, done.stderr
    assert "A kettle boils water at 100 degrees Celsius." in done.stdout
    assert "is not available at the moment; these are the book's own sentences." in done.stdout
    told = json.loads(ask(small_home, asked, "--json", **away).stdout)
    assert "the book's own sentences" in told["fallback"]
    assert told["withheld"] == 0


@pytest.mark.parametrize("preset", ["query", "ask", "envelope", "plain", "chat"])
def test_json_is_the_response_of_the_preset(small_home: Path, preset: str) -> None:
    done = ask(small_home, "What makes a kite fly?", "--preset", preset, "--json")
    told = json.loads(done.stdout)
    responses = {
        "query": query.Response,
        "ask": AgentResponse,
        "envelope": envelope.QueryResponse,
        "plain": plain.QueryResponse,
        "chat": chat.ChatResponse,
    }
    assert responses[preset].model_validate(told).model_dump(mode="json") == told


def test_ask_refuses_with_the_fixed_sentence_and_exit_code_1(small_home: Path) -> None:
    done = ask(small_home, "How do I train GPT-4?", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["answer"] == (
        "The provided book content does not contain sufficient information to answer this question"
    )
    assert answer["has_relevant_context"] is False
    assert answer["refusal_type"] == "low_relevance"
    assert (answer["sources"], answer["citations"]) == ([], [])
    assert answer["confidence_level"] == "insufficient"


def test_a_selection_restricts_the_answer_to_its_text(small_home: Path) -> None:
    selection = "A kite flies because the wind pushes it upwards."
    yes = ask(small_home, "What makes a kite fly?", "--selected-text", selection, "--json")
    answer = json.loads(yes.stdout)
    assert yes.returncode == 0
    assert answer["citations"][0]["section"] == "Selected text"
    question = "At how many degrees does a kettle boil?"
    no = ask(small_home, question, "--selected-text", selection, "--json")
    assert no.returncode == 1
    refusal = json.loads(no.stdout)
    assert refusal["answer"] == "The selected text does not contain this information"
    assert refusal["refusal_type"] == "selected_text_missing"


def test_plain_output_shows_numbered_sources(small_home: Path) -> None:
    asked = ("ask", "At how many degrees does a kettle boil water?", "-v")
    done = run_process(*asked, "--home", str(small_home))
    assert "Welcome › Kettles\n" in done.stdout
    assert "[1] “A kettle boils water at 100 degrees Celsius." in done.stdout
    assert "/docs/intro#kettles" in done.stdout
    assert " ms" in done.stdout


def test_search_prints_a_result_set(small_home: Path) -> None:
    command = ("search", "boiling water", "--top-k", "2", "--home", str(small_home), "--json")
    done = run(*command, "--relevance-threshold", "0")
    found = json.loads(done.stdout)
    assert found["query"] == "boiling water"
    assert found["total_count"] == len(found["results"]) == 2
    best = found["results"][0]
    assert set(best) == {
        *("score", "content", "source_url", "section_title", "chunk_id", "chapter"),
        *("page_title", "position", "content_hash", "filename", "kind"),
    }
    assert best["section_title"] == "Kettles"
    assert len(best["content_hash"]) == 32
    assert found["total_time_ms"] == pytest.approx(found["query_time_ms"] + found["search_time_ms"])
    # This book has no site URL: the address is that of the page while the book is served.
    assert best["source_url"] == "http://localhost:8000/read/docs/intro#kettles"
    asked = json.loads(
        run("ask", "boiling water", *command[4:], "--relevance-threshold", "0").stdout
    )
    assert asked["sources"][0]["url"].startswith("http://localhost:8000/read/docs/intro")
    relevant = json.loads(run(*command).stdout)["results"]
    assert relevant == [each for each in found["results"] if each["score"] >= 0.5]
    assert len(relevant) == 1


@pytest.mark.parametrize("verb", ["ask", "search"])
def test_a_batch_writes_one_line_per_line(small_home: Path, tmp_path: Path, verb: str) -> None:
    rows = [{"id": "a", "question": "What makes a kite fly?"}, {"id": "b", "question": "  "}]
    batch = tmp_path / "batch.jsonl"
    batch.write_text("\n".join(map(json.dumps, rows)) + "\nnot json\n")
    done = run(verb, "--batch", str(batch), "--home", str(small_home))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == ["a", "b", None]
    assert "error" not in lines[0]
    assert "empty" in lines[1]["error"]
    assert "Line 3" in lines[2]["error"]
    assert done.returncode == 2


def test_a_batch_can_be_read_from_stdin(small_home: Path) -> None:
    line = json.dumps({"id": 1, "question": "kites", "selected_text": "A kite flies in the wind."})
    done = run("ask", "--batch", "-", "--home", str(small_home), stdin=line)
    assert json.loads(done.stdout)["id"] == 1


def test_asking_creates_no_home(tmp_path: Path) -> None:
    assert ask(tmp_path / "nowhere", "kites").returncode == 2
    assert not (tmp_path / "nowhere").exists()


def test_a_book_of_an_unknown_embedder_is_refused_with_a_hint(
    small_home: Path, tmp_path: Path
) -> None:
    import shutil
    import sqlite3

    home = tmp_path / "home"
    shutil.copytree(small_home, home)
    with sqlite3.connect(home / "bythebook.db") as connection:
        connection.execute("UPDATE served SET embedder = 'elsewhere:embed-english'")
    for chosen in ([], ["--embedder", "local:minilm"]):
        done = ask(home, "kites", *chosen)
        assert done.returncode == 2
        assert "ingested with elsewhere:embed-english" in done.stderr
        assert "ingest the book again" in done.stderr
    assert "ingest the book again" in done.stderr


def test_the_home_can_be_set_by_environment(small_home: Path) -> None:
    done = run("search", "kites", "--json", BYTHEBOOK_HOME=str(small_home))
    assert json.loads(done.stdout)["total_count"] > 0


def test_several_processes_read_one_book_concurrently(small_home: Path) -> None:
    command = [PROGRAM, "search", "kites", "--json"]
    command += ["--relevance-threshold", "0"]
    both = [
        subprocess.Popen([*command, "--home", str(small_home)], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in both]
    assert [json.loads(output)["total_count"] for output in outputs] == [5, 5, 5]


def test_the_sample_book_answers_the_readmes_questions(sample_home: Path) -> None:
    done = ask(sample_home, "How do ROS 2 nodes exchange messages?", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    urls = [citation["url"] for citation in answer["citations"]]
    assert urls[0].endswith("/docs/ros2/nodes-and-topics#topics")
    page = (SAMPLE_BOOK / "docs" / "01-ros2" / "01-nodes-and-topics.mdx").read_text()
    assert answer["citations"][0]["quote"].split(".")[0] in page.replace("*", "").replace("`", "")
    refusal = ask(sample_home, "How do I train GPT-4?")
    assert refusal.returncode == 1
    assert "does not contain sufficient information" in refusal.stdout


def test_explain_shows_passages_gate_and_check_of_an_answer(sample_home: Path) -> None:
    question = "How many messages does the sensor data profile keep?"
    told = ask(sample_home, question, "--explain").stdout
    found, gate, check = (told.index(f"\n{part}\n") for part in ("Found", "Gate", "Check"))
    assert found < gate < check
    assert "passages have a similarity of at least 0.50" in told
    assert "supported (1.00)" in told
    assert "verbatim" in told
    why = json.loads(ask(sample_home, question, "--explain", "--json").stdout)["why"]
    assert why["found"][0]["score"] >= 0.5
    assert all(verdict["holds"] for verdict in why["check"])


def test_explain_shows_the_gate_of_a_refusal(sample_home: Path) -> None:
    told = ask(sample_home, "How do I train GPT-4?", "--explain").stdout
    assert "the passages answer with probability 0.0" in told
    assert "Check" not in told


def test_a_dry_run_writes_nothing(book_folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = run("ingest", str(book_folder), "--home", str(home), "--dry-run", "--json")
    plan = json.loads(done.stdout)
    assert done.returncode == 0
    assert not home.exists()
    assert plan["changed"] == plan["chunks_created"] == sum(p["chunks"] for p in plan["pages"])
    assert [page["filename"] for page in plan["pages"]] == ["intro.md", "workshop/building.md"]
    assert all(page["coverage"] == 1 for page in plan["pages"])
    plain = run("ingest", str(book_folder), "--home", str(home), "--dry-run")
    assert "intro.md: 3 passages" in plain.stdout


def test_an_ingest_that_lost_everything_keeps_the_book(book_folder: Path, tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    assert run("ingest", str(book_folder), *home).returncode == 0
    large = tmp_path / "large"
    large.mkdir()
    (large / "a.md").write_text("a" * 3_000_000)
    done = run("ingest", str(large), *home, "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["exit_code"], result["removed"]) == (1, 1, 0)
    assert "the old book is kept" in result["errors"][-1]
    assert run("ingest", str(large), *home, "--allow-removal").returncode == 1  # a.md has failed
    assert ask(tmp_path / "home", "Does a kettle boil water?").returncode == 1


def test_no_text_of_a_book_controls_the_terminal(tmp_path: Path) -> None:
    docs, home = tmp_path / "docs", ("--home", str(tmp_path / "home"))
    docs.mkdir()
    title = r'title: "T\e]8;;http://evil.example\e\\link\a\u202Egnp"'
    page = f"---\n{title}\n---\n\n## H\x1b[31m\x9b2J\n\nA kettle boils water.\n"
    (docs / "a.md").write_text(page)
    (docs / "b\nerror: forged.md").write_bytes(b"\xff")
    told = run("ingest", str(docs), *home, "-v")
    assert "\nerror: forged" not in told.stderr
    assert r"b\nerror: forged.md" in told.stderr
    for command in (("ask", "--explain"), ("search", "--explain"), ("ask", "-v")):
        done = run(command[0], "Does a kettle boil water?", *home, *command[1:])
        assert done.returncode == 0, done.stderr
        shown = told.stdout + told.stderr + done.stdout + done.stderr
        assert not set(shown) & set("\x1b\x07\x9b\u202e")
    questions = tmp_path / "q.jsonl"
    asked = {
        "question": "Does a kettle boil water?\x9b2J",
        "answer": "Yes.",
        "kind": "k\x1b]0;x\x07\n",
    }
    questions.write_text(json.dumps(asked))
    others = [
        ("ask", "Does a kettle boil water?", "--json"),
        ("search", "Does a kettle boil water?", "--json"),
        ("ask", "--batch", str(questions)),
        ("eval", str(questions)),
        ("eval", str(questions), "--bar", "right=1"),
        ("eval", "--make", "3"),
        ("ingest", str(docs), "--json"),
        ("ingest", str(docs), "--dry-run"),
        ("export", "--markdown", str(tmp_path / "out")),
        ("check", "index"),
        ("check", "providers"),
        ("keys", "revoke", "\x1b]0;x\x07\x9b"),
        ("threads", "show", "\x1b]0;x\x07\x9b"),
    ]
    for other in others:
        done = run(*other, *home)
        assert done.stdout + done.stderr, other
        assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\u202e"), other
    talked = run("chat", *home, stdin="Does a kettle boil water?\x9b2J\n/sources\n/threads\n")
    listed = run("threads", "list", *home)
    thread = listed.stdout.split()[0]
    for done in (talked, listed, run("threads", "show", thread, *home)):
        assert done.stdout
        assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\u202e")


def test_watch_ingests_again_when_a_file_changes(book_folder: Path, tmp_path: Path) -> None:
    command = [PROGRAM, "ingest", str(book_folder)]
    home = str(tmp_path / "home")
    with subprocess.Popen(
        [*command, "--home", home, "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert "2 pages" in process.stdout.readline()
            process.stdout.readline()
            book_folder.rename(book_folder.with_name("away"))  # as during a checkout
            assert process.stderr is not None
            assert any("There is no folder" in line for line in process.stderr)
            book_folder.with_name("away").rename(book_folder)
            (book_folder / "new.md").write_text("# New\n\nA page about zeppelins.\n")
            assert "3 pages" in process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def test_check_links_finds_missing_pages(book_folder: Path, tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    assert run("check", "links", *home).returncode == 2
    assert run("ingest", str(book_folder), *home).returncode == 0
    well = run("check", "links", *home)
    assert (well.returncode, "0 lost" in well.stdout) == (0, True)
    (book_folder / "intro.md").unlink()
    broken = run("check", "links", *home, "--json")
    assert broken.returncode == 1
    assert "/docs/intro#kites" in json.loads(broken.stdout)["sources"]
    assert run("check", "links", *home, "--build", str(tmp_path)).returncode == 2


def test_windows_is_refused_with_a_message() -> None:
    code = "import sys; sys.platform = 'win32'; import bythebook.cli.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "bythebook: Windows is not supported. Use Linux, macOS or WSL.\n"
