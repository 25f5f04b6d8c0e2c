"""Feedback on answers is stored, its text only with consent."""

import json
import uuid
from typing import Any

import pytest
from starlette.testclient import TestClient

from bythebook.conversations.query_log import LogQueue
from bythebook.interfaces.conversations import Feedback
from bythebook.providers.testing import MemoryFeedback, MemoryQueryLog


@pytest.fixture
def parts() -> dict[str, object]:
    return {"feedback": MemoryFeedback(), "log": LogQueue(MemoryQueryLog())}


@pytest.fixture
def given(parts: dict[str, Any]) -> dict[str, Feedback]:
    given: dict[str, Feedback] = parts["feedback"].given
    return given


def _done(client: TestClient, **body: str) -> dict[str, Any]:
    told = client.post("/chat/stream", json=body).text
    done: dict[str, Any] = json.loads(told.split("event: done\ndata: ")[1].splitlines()[0])
    return done


def test_feedback_has_the_question_id_of_the_log(
    client: TestClient, parts: dict[str, Any], given: dict[str, Feedback]
) -> None:
    asked = _done(client, message="At what temperature does water boil?")["query_id"]
    for verdict in ("up", "down"):
        kept = client.post("/feedback", json={"query_id": asked, "verdict": verdict})
        assert kept.json() == {"kept": True}
    [feedback] = given.values()
    assert (feedback.query, feedback.verdict, feedback.text) == (asked, "down", None)
    log = parts["log"]
    client.portal.call(log.flush)  # type: ignore[union-attr]
    assert list(log.kept.queries) == [asked]


def test_text_of_feedback_needs_consent(client: TestClient, given: dict[str, Feedback]) -> None:
    body = {"verdict": "down", "reason": "wrong", "text": "It boils at 100."}
    refused = client.post("/feedback", json=body)
    assert refused.status_code == 400
    assert "agreed" in refused.json()["message"]
    assert given == {}
    assert client.post("/feedback", json={**body, "agreed": True}).status_code == 200
    [feedback] = given.values()
    assert (feedback.reason, feedback.text) == ("wrong", "It boils at 100.")


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"verdict": "sideways"}, {"verdict": "up", "reason": "x"}),
        {"verdict": "up", "query_id": "1"},
        {"verdict": "up", "text": "x" * 1001, "agreed": True},
    ],
)
def test_invalid_feedback_is_rejected(
    client: TestClient, given: dict[str, Feedback], body: dict[str, object]
) -> None:
    assert client.post("/feedback", json=body).status_code == 400
    assert given == {}


@pytest.mark.parametrize("parts", [{}])
def test_without_a_store_feedback_is_not_kept(client: TestClient) -> None:
    body = {"verdict": "up", "query_id": str(uuid.uuid4())}
    assert client.post("/feedback", json=body).json() == {"kept": False}
