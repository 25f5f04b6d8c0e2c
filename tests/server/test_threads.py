"""Conversations of the chat contract over HTTP: read, listed and deleted."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from bythebook.access_stores import open_access_stores
from bythebook.book import Book
from bythebook.server.access import make_key
from bythebook.server.app import create_app
from tests.server.access_fixtures import AWAY, PEPPER, access_of

_QUESTION = "At how many degrees does a kettle boil water?"


_KEYS = {name: make_key(PEPPER) for name in ("ann", "bob")}


def _headers_of(name: str) -> dict[str, str]:
    """The headers of the client with this key."""
    return {"X-API-Key": _KEYS[name][0]}


@pytest.fixture
def keyed(library: Book) -> Iterator[TestClient]:
    stores = open_access_stores()
    for _, key in _KEYS.values():
        asyncio.run(stores.keys.add(key))
    with TestClient(create_app(library, access=access_of(stores=stores))) as client:
        yield client


def _talk(client: TestClient, *messages: str, owner: str = "ann") -> str:
    session = str(uuid.uuid4())
    for message in messages:
        body = {"message": message, "session_id": session}
        answered = client.post("/chat/run", json=body, headers=_headers_of(owner))
        assert answered.status_code == 200
    return session


@pytest.mark.parametrize("path", ["/chat/threads/{}", "/session/{}/history"])
def test_thread_is_shown_in_the_chat_format(keyed: TestClient, path: str) -> None:
    session = _talk(keyed, _QUESTION, "And what about kites?")
    response = keyed.get(path.format(session), headers=_headers_of("ann"))
    body = response.json()
    assert response.status_code == 200
    assert set(body) == {
        *("thread_id", "messages", "created_at", "updated_at", "topic_summary", "metadata"),
    }
    assert body["thread_id"] == session
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant"] * 2
    assert set(body["messages"][0]) == {"role", "content", "timestamp"}
    assert set(body["messages"][1]) == {"role", "content", "timestamp", "confidence", "citations"}
    for citation in body["messages"][1]["citations"]:
        assert f"[{citation['number']}]" in body["messages"][1]["content"]
        assert citation["url"].startswith("http://testserver/read/docs/")
        assert citation["link"].startswith(citation["url"])
    assert body["created_at"].endswith("Z")


def test_threads_are_listed_page_by_page(keyed: TestClient) -> None:
    sessions = [_talk(keyed, _QUESTION) for _ in range(3)]
    _talk(keyed, _QUESTION, owner="bob")
    mine = _headers_of("ann")
    first = keyed.get("/chat/threads?limit=2", headers=mine).json()
    assert first["next_offset"] == 2
    last = keyed.get("/chat/threads?limit=2&offset=2", headers=mine).json()
    assert last["next_offset"] is None
    listed = [each["thread_id"] for each in first["threads"] + last["threads"]]
    assert sorted(listed) == sorted(sessions)
    assert {each["message_count"] for each in first["threads"]} == {2}


@pytest.mark.parametrize("path", ["/chat/threads/{}", "/session/{}"])
def test_deleted_thread_is_not_found(keyed: TestClient, path: str) -> None:
    session, mine = _talk(keyed, _QUESTION), _headers_of("ann")
    gone = keyed.delete(path.format(session), headers=mine)
    assert (gone.status_code, gone.content) == (204, b"")
    again = keyed.delete(path.format(session), headers=mine)
    assert (again.status_code, again.json()["error_code"]) == (404, "NOT_FOUND")
    assert keyed.get(f"/chat/threads/{session}", headers=mine).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/chat/threads/7",
        "/chat/threads/7a9d3f80-e182-11f1-8000-02fc00000001",
        "/session/x/history",
        "/chat/threads?limit=0",
        "/chat/threads?limit=101",
        "/chat/threads?offset=-1",
        "/chat/threads?offset=99999999999999999999",
    ],
)
def test_invalid_thread_id_is_400(keyed: TestClient, path: str) -> None:
    response = keyed.get(path)
    assert response.status_code == 400
    assert set(response.json()) == {"error_code", "message", "suggested_action", "request_id"}


@pytest.mark.parametrize("address", ["127.0.0.1", AWAY])
def test_without_a_key_a_thread_is_found_only_by_its_id(library: Book, address: str) -> None:
    """With BYTHEBOOK_KEYS=open, clients without a key cannot be told apart."""
    session = str(uuid.uuid4())
    with TestClient(create_app(library, access=access_of())) as reader:
        body = {"message": _QUESTION, "session_id": session}
        assert reader.post("/chat/run", json=body).status_code == 200
        mine = reader.get("/chat/threads").json()
    app = create_app(library, access=access_of())
    with TestClient(app, "http://localhost", client=(address, 1)) as stranger:
        listed = stranger.get("/chat/threads?limit=100").json()
        unknown = stranger.get(f"/chat/threads/{uuid.uuid4()}")
        known = stranger.get(f"/chat/threads/{session}")
    assert mine == listed == {"threads": [], "next_offset": None}
    assert (unknown.status_code, known.status_code) == (404, 200)


def test_without_a_key_an_unknown_stream_cannot_be_resumed(library: Book) -> None:
    body = {"message": _QUESTION, "session_id": str(uuid.uuid4())}
    with TestClient(create_app(library, access=access_of())) as client:
        told = client.post("/chat/stream", json=body).text
        event = told.partition("id: ")[2].partition(".")[0]
        guesses = [uuid.uuid4().hex, f"{int(event, 16) ^ 1:032x}", body["session_id"], ""]
        for guess in guesses:
            headers = {"Last-Event-ID": f"{guess}.0"}
            taken = client.post("/chat/stream", json=body, headers=headers)
            assert taken.status_code in (400, 404), guess
        headers = {"Last-Event-ID": f"{event}.0"}
        assert client.post("/chat/stream", json=body, headers=headers).text == told


def test_without_a_key_a_reply_is_not_replayed_to_another_address(library: Book) -> None:
    """The answer holds the id of a conversation; the Idempotency-Key may be easy to guess."""
    access, headers = access_of(), {"Idempotency-Key": "1"}
    app = create_app(library, access=access)
    with TestClient(app) as reader:
        told = reader.post("/chat/run", json={"message": _QUESTION}, headers=headers)
        stranger = TestClient(app, client=(AWAY, 1))
        other = stranger.post("/chat/run", json={"message": _QUESTION}, headers=headers)
        again = reader.post("/chat/run", json={"message": _QUESTION}, headers=headers)
    assert "idempotent-replayed" not in other.headers
    assert other.json()["session_id"] != told.json()["session_id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == told.json()


def test_a_conversation_is_found_by_the_metadata_of_its_messages(keyed: TestClient) -> None:
    session = _talk(keyed, _QUESTION)
    metadata = {"user_id": "u:1", "course.tags": ["a b", "c"]}
    body = {"message": "Why?", "session_id": session, "metadata": metadata}
    _talk(keyed, _QUESTION)
    assert keyed.post("/chat/run", json=body, headers=_headers_of("ann")).status_code == 200

    def listed(*wanted: str, owner: str = "ann") -> list[str]:
        parameters = {"metadata": list(wanted)}
        told = keyed.get("/chat/threads", params=parameters, headers=_headers_of(owner)).json()
        return [thread["thread_id"] for thread in told["threads"]]

    assert len(listed()) == 2
    assert listed("user_id:u:1") == [session]
    assert listed("course.tags:c", "course.tags:a b") == [session]
    assert listed("course.tags:d", "course.tags:a b") == []
    assert listed("user_id:u:1", "tag:x") == listed("user_id:u:1", owner="bob") == []
    read = keyed.get(f"/chat/threads/{session}", headers=_headers_of("ann")).json()
    assert read["metadata"] == metadata
    for wrong in ("user_id", ":x", 'a"b:c'):
        parameters = {"metadata": wrong}
        refused = keyed.get("/chat/threads", params=parameters, headers=_headers_of("ann"))
        assert refused.status_code == 400
