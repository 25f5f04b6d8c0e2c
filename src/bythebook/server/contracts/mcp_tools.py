"""MCP tools of the book: what each takes, does and returns, as structured data and as text.

The docstrings and field descriptions of the tools are prompts: the models that choose a tool read
them. The protocol itself is implemented in ``server/mcp.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, StringConstraints

from bythebook.answering.gate import band
from bythebook.book import Book
from bythebook.contracts.fields import Selection, Text
from bythebook.interfaces.conversations import Asker
from bythebook.server.contracts.openai.completions import ReplyDetails, details_of
from bythebook.text.text_kinds import shown_part
from bythebook.types import Answer, Level, Passage, Question, Reply, TextKind

_Question = Annotated[Text, StringConstraints(max_length=5000)]


class ToolResult(BaseModel):
    @abstractmethod
    def as_text(self) -> str:
        """Return the result as plain text with links, for clients that read only text."""


class ToolCall(BaseModel):
    """Arguments of a call; the docstring of a subclass describes the tool to the model."""

    name: ClassVar[str]
    result: ClassVar[type[ToolResult]]

    @abstractmethod
    async def run(self, book: Book, asker: Asker) -> ToolResult: ...


# --- search_book ----------------------------------------------------------------------------------


class FoundPassage(BaseModel):
    title: str  # path: page › section
    url: str
    confidence: Level
    text: str


class FoundPassages(ToolResult):
    passages: list[FoundPassage]

    def as_text(self) -> str:
        texts = [f"{passage.title} ({passage.url})\n{passage.text}" for passage in self.passages]
        return "\n\n".join(texts) or "Nothing was found."


class SearchBook(ToolCall):
    """Find the passages of the book that are most relevant to a query, best first.

    Returns the text of each passage, its url and a confidence: high, medium or low.
    Use this tool to read what the book says about a subject; use ask_book to answer a question.
    """

    name = "search_book"
    result = FoundPassages

    query: Annotated[
        _Question, Field(description="the subject or question to search for, in natural language")
    ]
    top_k: int = Field(5, ge=1, le=20, description="maximum number of passages")

    async def run(self, book: Book, asker: Asker) -> FoundPassages:
        findings = await book.search(Question(text=self.query, top_k=self.top_k, min_score=0.0))
        return FoundPassages(
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


# --- ask_book -------------------------------------------------------------------------------------


class AskResult(ReplyDetails, ToolResult):
    answered: bool
    text: str

    def as_text(self) -> str:
        sources = [f"[{s.number}] {s.section}: {s.link}" for s in self.sources]
        nearby = [f"Nearby: {topic.title}: {topic.url}" for topic in self.nearby]
        return "\n\n".join(filter(None, (self.text, "\n".join([*sources, *nearby]))))


class AskBook(ToolCall):
    """Answer one question from the text of the book and nothing else.

    Each sentence of the answer ends with the numbers of the sources that support it, such as [1];
    keep these numbers and the links of the sources when you pass the answer on. If the book does
    not contain the answer, answered is false, refusal_type is the reason, and nearby lists related
    topics of the book. In that case, say that the book does not answer the question.
    """

    name = "ask_book"
    result = AskResult

    question: Annotated[
        _Question,
        Field(description="one complete question that can be understood without the conversation"),
    ]
    selected_text: Selection | None = Field(
        None, description="a passage of text; if given, the answer is taken from this text only"
    )

    async def run(self, book: Book, asker: Asker) -> AskResult:
        question = Question(text=self.question, selection=self.selected_text)
        return show_reply(await book.reply(question, asker=asker))


def show_reply(reply: Reply) -> AskResult:
    outcome = reply.outcome
    texts: tuple[str | None, ...] = (outcome.text,)
    if isinstance(outcome, Answer):
        texts = (outcome.markdown, outcome.disclaimer)
    return AskResult(
        **details_of(reply).model_dump(),
        answered=isinstance(outcome, Answer),
        text="\n\n".join(filter(None, texts)),
    )


# --- read_section ---------------------------------------------------------------------------------


class BookSection(ToolResult):
    title: str
    url: str
    text: str

    def as_text(self) -> str:
        return f"{self.title} ({self.url})\n\n{self.text}"


class ReadSection(ToolCall):
    """Return the full text of a section or page of the book.

    Use it to read more around a passage that search_book found or a source that ask_book cited.
    """

    name = "read_section"
    result = BookSection

    url: Annotated[
        Text,
        StringConstraints(max_length=2000),
        Field(
            description="the url of a source or passage, as search_book or ask_book returned it; "
            "without its #fragment, the whole page is returned"
        ),
    ]

    async def run(self, book: Book, asker: Asker) -> BookSection:
        url, passages = await book.section(self.url)
        return show_section(url, passages)


def show_section(url: str, passages: Sequence[Passage]) -> BookSection:
    """Join the passages in order, each new heading before its text."""
    place, parts, heading = passages[0].place, [], passages[0].place.section
    for passage in passages:
        if passage.place.section != heading:
            heading = passage.place.section
            parts.append(passage.place.heading)
        parts.append(shown_part(passage, {TextKind.INSTRUCTION}).text)
    title = place.path if "#" in url else place.title
    return BookSection(title=title, url=url, text="\n\n".join(parts))


TOOLS: dict[str, type[ToolCall]] = {tool.name: tool for tool in (SearchBook, AskBook, ReadSection)}
