"""``bythebook check``: every configured provider and store, and the hints on failures."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bythebook.cli.main import app
from bythebook.errors import InvalidInput
from tests.providers.loopback import Loopback, Script, chat, embeddings, page, refuse
from tests.server.running_server import free_port
from tests.support.command import run
from tests.support.samples import small_book
from tests.support.servers import Node


def check(home: Path, *arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(
        app, ["check", *arguments, "--home", str(home)], env=environment, catch_exceptions=True
    )


def test_working_providers_are_ticked(small_home: Path) -> None:
    done = check(small_home)
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "✓ database sqlite",
        "✓ index",
        "✓ embedder local:minilm-int8",
        "✓ reader local:reader-v2",
    ]


def test_a_home_without_a_book_is_reported_with_a_hint(tmp_path: Path) -> None:
    done = check(tmp_path / "none", "providers", "--json")
    assert done.exit_code == 2
    checks = json.loads(done.output)["checks"]
    assert [one["name"] for one in checks] == ["database sqlite", "index", "embedder auto"]
    assert {one["cure"] for one in checks} == {"Run: bythebook ingest path/to/docs"}


def test_options_before_a_subcommand_are_refused(small_home: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--home", str(small_home), "index"])
    assert isinstance(done.exception, InvalidInput)
    assert "bythebook check index …" in str(done.exception)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        (lambda request: chat("Yes."), None),
        (lambda request: refuse(401), "key"),
        (lambda request: refuse(404), "model"),
        (lambda request: page(), "web page"),
    ],
    ids=["right", "wrong key", "unknown model", "a web page"],
)
def test_the_configured_writer_is_checked(
    small_home: Path, script: Script, verdict: str | None
) -> None:
    with Loopback(script) as provider:
        done = check(
            small_home,
            BYTHEBOOK_WRITER="openai:gpt-4o-mini",
            BYTHEBOOK_MODEL_URL=f"{provider.url}/v1",
            BYTHEBOOK_MODEL_KEY="sk-secret-1234567890",
        )
    [line] = [line for line in done.output.splitlines() if "writer" in line]
    assert "secret" not in done.output
    if verdict is None:
        assert (line, done.exit_code) == ("✓ writer openai:gpt-4o-mini", 0)
    else:
        assert line.startswith("✗ writer openai:gpt-4o-mini: ")
        assert verdict in line.lower()
        assert done.exit_code in (2, 3)


@pytest.mark.loopback
def test_each_unavailable_provider_is_listed(small_home: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    done = check(
        small_home,
        BYTHEBOOK_EMBEDDER="openai:text-embedding-3-small",
        BYTHEBOOK_EMBEDDING_URL=f"http://{nowhere}/v1",
        BYTHEBOOK_EMBEDDING_KEY="sk-secret-1234567890",
        BYTHEBOOK_WRITER="ollama:llama3",
        OLLAMA_HOST=f"http://{nowhere}",
        QDRANT_URL=f"http://{nowhere}",
        BYTHEBOOK_RATE_LIMIT_STORE=f"redis://{nowhere}/0",
    )
    assert done.exit_code == 3
    lines = done.output.splitlines()
    tried = [line.partition(":")[0].removeprefix("✗ ") for line in lines]
    assert tried[0] == "✓ database sqlite"
    assert tried[1:4] == ["store qdrant", "index", "counts redis"]
    assert [line for line in lines if line.startswith("✗ embedder openai:text-embedding-3-small: ")]
    assert [line for line in lines if line.startswith("✗ writer ollama:llama3: ")]
    assert nowhere not in done.output


@pytest.mark.loopback
def test_an_unavailable_database_is_reported_without_its_password(small_home: Path) -> None:
    address = f"postgresql://reader:secret@127.0.0.1:{free_port()}/book"
    done = check(small_home, DATABASE_URL=address)
    assert done.exit_code == 3
    assert done.output.startswith("✗ database postgresql: The database did not answer. Check ")
    assert "secret" not in done.output


@pytest.mark.real
def test_a_working_qdrant_server_and_hosted_embedder(
    tmp_path: Path, qdrant_server: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bythebook.toml").write_text('[collection]\nname = "checked"\n')
    monkeypatch.chdir(tmp_path)
    with Loopback(embeddings) as provider:
        chosen = {
            "QDRANT_URL": qdrant_server[0].url,
            "BYTHEBOOK_EMBEDDER": "cohere:embed-english-v3.0",
            "BYTHEBOOK_EMBEDDING_URL": provider.url,
            "BYTHEBOOK_EMBEDDING_KEY": "sk-secret-1234567890",
        }
        book, home = small_book(tmp_path / "docs"), tmp_path / "home"
        ingested = run("ingest", str(book), "--home", str(home), **chosen)
        assert ingested.returncode == 0, ingested.stderr
        done = check(home, **chosen)
    assert done.stdout.splitlines() == [
        "✓ database sqlite",
        "✓ store qdrant",
        "✓ index",
        "✓ embedder cohere:embed-english-v3.0",
        "✓ reader local:reader-v2",
    ]
