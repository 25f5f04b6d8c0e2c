"""MCP tools of the book: input models, and results as structured data and as text.

The protocol itself is implemented in ``server/mcp.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from bythebook.answering.gate import band
from bythebook.documents.fields import Selection, Text
from bythebook.retrieval.search import Findings
from bythebook.server.contracts.openai import Found, found_in
from bythebook.types import Answer, Level, Passage, Question, Reply

_Question = Annotated[Text, StringConstraints(max_length=5000)]

# --- inputs ---------------------------------------------------------------------------------------


class SearchBook(BaseModel):
    """Find the passages of the book that are most relevant to a query, best first."""

    query: Annotated[_Question, Field(description="what to look for, in words")]
    top_k: int = Field(5, ge=1, le=20, description="how many passages")

    @property
    def question(self) -> Question:
        return Question(text=self.query, top_k=self.top_k)


class AskBook(BaseModel):
    """Answer a question from the book. Each sentence cites the passage that supports it.

    If the book does not contain the answer, the question is refused; refusal_type is the reason.
    """

    question: Annotated[_Question, Field(description="one question that stands by itself")]
    selected_text: Selection | None = Field(
        None, description="a text of the book: then it alone may answer"
    )

    @property
    def asked(self) -> Question:
        return Question(text=self.question, selection=self.selected_text)


class ReadSection(BaseModel):
    """Read a whole section or page of the book, by the url of a source or a passage."""

    url: Annotated[
        Text, StringConstraints(max_length=2000), Field(description="a section's, or a page's")
    ]


# --- results --------------------------------------------------------------------------------------


class FoundPassage(BaseModel):
    title: str  # path: page › section
    url: str
    confidence: Level
    text: str


class SearchResult(BaseModel):
    passages: list[FoundPassage]


class AskResult(Found):
    answered: bool
    text: str


class Section(BaseModel):
    title: str
    url: str
    text: str


def show_findings(findings: Findings) -> SearchResult:
    return SearchResult(
        passages=[
            FoundPassage(
                title=hit.passage.place.path,
                url=hit.passage.place.url,
                confidence=band(hit.score),
                text=hit.passage.text,
            )
            for hit in findings.hits
        ]
    )


def show_reply(reply: Reply) -> AskResult:
    outcome = reply.outcome
    answered = isinstance(outcome, Answer)
    below = outcome.disclaimer if isinstance(outcome, Answer) else None
    text = outcome.markdown if isinstance(outcome, Answer) else outcome.text
    return AskResult(
        **found_in(reply).model_dump(),
        answered=answered,
        text="\n\n".join(filter(None, (text, below))),
    )


def show_section(url: str, passages: Sequence[Passage]) -> Section:
    """Join the passages in order, each new heading before its text."""
    place, parts, heading = passages[0].place, [], passages[0].place.section
    for passage in passages:
        if passage.place.section != heading:
            heading = passage.place.section
            parts.append(passage.place.heading)
        parts.append(passage.text)
    title = place.path if "#" in url else place.title
    return Section(title=title, url=url, text="\n\n".join(parts))


def write(result: BaseModel) -> str:
    """Render a result as plain text with links, for clients that read only text."""
    if isinstance(result, SearchResult):
        found = [f"{each.title} ({each.url})\n{each.text}" for each in result.passages]
        return "\n\n".join(found) or "Nothing was found."
    if isinstance(result, AskResult):
        sources = [f"[{s.number}] {s.section}: {s.link}" for s in result.sources]
        nearby = [f"Nearby: {topic.title}: {topic.url}" for topic in result.nearby]
        return "\n\n".join(filter(None, (result.text, "\n".join([*sources, *nearby]))))
    assert isinstance(result, Section)
    return f"{result.title} ({result.url})\n\n{result.text}"
