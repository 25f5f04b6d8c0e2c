"""Thresholds of the contracts bound the passages that their answers use."""

from bythebook.config.settings import Settings
from bythebook.contracts.ask import AgentQuery
from bythebook.contracts.ask import read as read_ask
from bythebook.contracts.chat import ChatRequest
from bythebook.contracts.chat import read as read_chat
from bythebook.contracts.plain import QueryRequest
from bythebook.contracts.plain import read as read_plain
from bythebook.contracts.query import Query
from bythebook.contracts.query import read as read_query
from bythebook.types import Level


def test_contracts_with_a_threshold_use_only_passages_that_reach_it() -> None:
    ask = read_ask(AgentQuery(text="kite", relevance_threshold=0.6))
    chat = read_chat(ChatRequest(message="kite", similarity_threshold=0.8))
    query, plain = read_query(Query(text="kite")), read_plain(QueryRequest(query="kite"))
    assert (ask.min_score, ask.min_evidence) == (0.6, 0.6)
    assert (chat.min_score, chat.min_evidence) == (0.8, 0.8)
    assert (query.min_score, query.min_evidence) == (0.75, 0.75)
    assert (plain.min_score, plain.min_evidence) == (0.5, 0.5)


def test_the_default_threshold_is_the_same_in_python_and_over_http() -> None:
    over_http = read_ask(AgentQuery(text="kite"))
    for threshold in (None, 0.5):
        question = Settings().limits.question("kite", relevance_threshold=threshold)
        assert question.min_score == over_http.min_score
        assert question.min_evidence == over_http.min_evidence


def test_chat_with_whole_evidence_uses_the_threshold_of_the_book() -> None:
    question = read_chat(ChatRequest(message="kite", whole_evidence=True))
    assert (question.min_score, question.min_evidence) == (0.5, 0.0)
    assert question.min_confidence is Level.INSUFFICIENT
