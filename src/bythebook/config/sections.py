"""The sections of the settings, such as ``[limits]``, with their defaults and descriptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from bythebook import validation
from bythebook.errors import InvalidInput
from bythebook.interfaces.source import SITE_URL
from bythebook.types import FilterValue, Question


class SettingsSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _secret(description: str, **constraints: Any) -> Any:
    """Define an optional secret, which is left out of dumps and representations."""
    text = f"{description}; never shown."
    return Field(None, exclude=True, repr=False, description=text, **constraints)


def _is_bare_url(url: str) -> bool:
    """Return whether this is an HTTP URL without credentials, query and fragment."""
    try:
        parts = urlsplit(url.strip())
        usable = parts.port is None or parts.port > 0
    except ValueError:  # invalid port, or a missing bracket
        return False
    bare = not (parts.username or parts.password or parts.query or parts.fragment)
    return usable and bare and parts.scheme in ("http", "https") and bool(parts.hostname)


def _check_endpoint(url: str) -> str:
    if not _is_bare_url(url):
        raise ValueError("it should look like http://127.0.0.1:8080/v1, without a key in it")
    return url


def _check_nodes(urls: str) -> str:
    if not all(map(_is_bare_url, urls.split(","))):
        raise ValueError("it should look like http://127.0.0.1:6333, without a key in it")
    return urls


def _check_site(url: str) -> str:
    if not SITE_URL.fullmatch(url):
        raise ValueError("it should look like https://example.org")
    return url


def _split_commas(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _check_origins(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(map(is_origin, value)):
        raise ValueError("each should look like https://book.example, as a browser writes it")
    return value


def _check_networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for network in value:
        ip_network(network)
    return value


def _check_rate_limit_store(value: str) -> str:
    if value not in ("database", "memory") and not value.startswith(("redis://", "rediss://")):
        raise ValueError("it should be database, memory or redis://host:port/number")
    return value


def is_origin(text: str) -> bool:
    """Return whether a browser would send this ``Origin``: lower case, no path or default port."""
    match = re.fullmatch(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?", text)
    return match is not None and (match[1], match[3]) not in (("http", "80"), ("https", "443"))


_Endpoint = Annotated[str, AfterValidator(_check_endpoint)]
_CommaList = Annotated[tuple[str, ...], BeforeValidator(_split_commas)]


class Limits(SettingsSection):
    """Limits on requests, and the thresholds for answering."""

    top_k: int = Field(5, ge=1, description="Passages to retrieve for a question.")
    max_top_k: int = Field(20, ge=1, description="Largest `top_k` that a request may ask for.")
    min_score: float = Field(
        0.5, ge=0, le=1, description="Minimum similarity of a passage to be used."
    )
    question_chars: int | None = Field(None, ge=1, description="Longest question, in characters.")
    question_words: int | None = Field(None, ge=1, description="Longest question, in words.")
    selection_min_chars: int = Field(10, ge=1, description="Shortest selection, in characters.")
    selection_chars: int = Field(5000, ge=1, description="Longest selection, in characters.")
    selection_words: int | None = Field(None, ge=1, description="Longest selection, in words.")
    context_tokens: int = Field(
        4000, ge=1, description="Tokens of passages that the writer gets at most."
    )

    def question(
        self,
        text: str,
        *,
        selection: str | None = None,
        top_k: int | None = None,
        relevance_threshold: float | None = None,
        filters: Mapping[str, FilterValue] | None = None,
    ) -> Question:
        """Return a question within these limits; raise InvalidInput if it is not."""
        least = self.check_threshold(relevance_threshold)
        return Question(
            text=self.check_question(text),
            selection=None if selection is None else self.check_selection(selection),
            top_k=self.check_top_k(top_k),
            min_score=least,
            min_evidence=least,
            filters=filters or {},
        )

    def check_question(self, text: str) -> str:
        """Return the stripped question; raise InvalidInput if it is empty or too long."""
        question = _valid_text(text, "question").strip()
        if not question:
            raise InvalidInput("The question is empty.", hint="Ask something about the book.")
        for count, unit, most in (
            (len(question), "characters", self.question_chars),
            (len(question.split()), "words", self.question_words),
        ):
            if most is not None and count > most:
                raise InvalidInput(
                    f"The question has {count} {unit}; {most} are allowed.",
                    hint="Ask a shorter question.",
                )
        return question

    def check_selection(self, text: str) -> str:
        """Return the stripped selection; raise InvalidInput if it is too short or too long."""
        selection = _valid_text(text, "selected text").strip()
        words = len(selection.split())
        if not self.selection_min_chars <= len(selection) <= self.selection_chars:
            raise InvalidInput(
                f"The selected text has {len(selection)} characters.",
                hint=f"Select {self.selection_min_chars} to {self.selection_chars} characters.",
            )
        if self.selection_words is not None and words > self.selection_words:
            raise InvalidInput(
                f"The selected text has {words} words.",
                hint=f"Select at most {self.selection_words} words.",
            )
        return selection

    def check_top_k(self, top_k: int | None) -> int:
        """Return the number of passages to retrieve; raise InvalidInput if it is out of range."""
        if top_k is None:
            return min(self.top_k, self.max_top_k)
        if not 1 <= top_k <= self.max_top_k:
            raise InvalidInput(
                f"top_k is {top_k}.", hint=f"Use a number from 1 to {self.max_top_k}."
            )
        return top_k

    def check_threshold(self, threshold: float | None) -> float:
        """Return the minimum score of a passage: the requested one, or the preset's."""
        if threshold is None:
            return self.min_score
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if not number or not 0 <= threshold <= 1:
            raise InvalidInput(
                f"relevance_threshold is {validation.shown(threshold)}.",
                hint="Use a number from 0 to 1.",
            )
        return float(threshold)


def _valid_text(text: object, what: str) -> str:
    """Return the text; reject unpaired surrogates (bytes that were not UTF-8) and NULs."""
    if not isinstance(text, str):
        raise InvalidInput(f"The {what} is not a text.", hint="Ask in words.")
    if any("\ud800" <= char <= "\udfff" or char == "\0" for char in text):
        raise InvalidInput(f"The {what} contains invalid characters.", hint="Send UTF-8.")
    return text


class Collection(SettingsSection):
    """Qdrant collection, as in a contract's original system; the embedded store has none."""

    name: str = Field(
        "bythebook", min_length=1, description="Name of the collection on a Qdrant server."
    )
    existing: bool = Field(
        False, description="Read a collection that another system filled; ingest nothing."
    )
    vector: str | None = Field(None, description="Vector of an existing collection with several.")
    fields: Mapping[str, str] = Field(
        {},
        description="Payload fields of an existing collection: our name (text, title, section, "
        "url, file, position …) and the collection's.",
    )
    indexes: Mapping[str, Literal["keyword", "integer", "text"]] = Field(
        {}, description="Further payload fields that are indexed: their names and types."
    )


class Qdrant(SettingsSection):
    """Qdrant server or cluster. If ``url`` is set, the index is stored there."""

    url: Annotated[str, AfterValidator(_check_nodes)] | None = Field(
        None, description="URL of the server, or of the nodes of a cluster, separated by commas."
    )
    api_key: SecretStr | None = _secret("API key of the server")
    replication: int = Field(1, ge=1, description="Nodes that hold a copy of each shard.")
    shards: int = Field(
        1, ge=1, description="Shards of a collection. Each computes term weights (IDF) by itself."
    )
    timeout_s: float = Field(1.0, gt=0, description="Timeout of a search, in seconds.")

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(url.strip() for url in (self.url or "").split(",") if url.strip())


class Model(SettingsSection):
    """Language model that writes answers, if `writer` names one."""

    base_url: _Endpoint | None = Field(
        None,
        description="OpenAI-compatible endpoint (vLLM, llama.cpp, a gateway) to use instead of "
        "the provider's. Only `model.api_key` is sent to it.",
    )
    api_key: SecretStr | None = _secret("API key to use instead of the provider's")
    timeout_s: float = Field(30, gt=0, description="Timeout of a whole draft, in seconds.")
    first_token_timeout_s: float = Field(
        8, gt=0, description="Timeout until the first token, retries included, in seconds."
    )
    idle_timeout_s: float = Field(
        10, gt=0, description="Timeout between two tokens of a stream, in seconds."
    )
    max_output_tokens: int = Field(700, ge=1, description="Longest draft, in tokens.")
    temperature: float = Field(0, ge=0, le=2, description="Sampling temperature.")
    daily_tokens: int | None = Field(
        None,
        ge=1,
        description="Token budget of a day (UTC), input and output; unlimited by default.",
    )
    price_in: float | None = Field(
        None, ge=0, description="Price of a million input tokens, in dollars."
    )
    price_out: float | None = Field(
        None, ge=0, description="Price of a million output tokens, in dollars."
    )
    fallback: Literal["extractive", "none"] = Field(
        "extractive",
        description="Writer to use when the model fails: extractive (offline), or none (an error).",
    )
    agentic: bool = Field(
        False, description="Let the model search the book again, at most three times."
    )
    cache: bool = Field(False, description="Cache answers and reuse them for the same question.")


class Embedding(SettingsSection):
    """Remote embedder, if `embedder` names one."""

    base_url: _Endpoint | None = Field(
        None,
        description="Endpoint to use instead of the provider's. Only `embedding.api_key` is sent "
        "to it.",
    )
    api_key: SecretStr | None = _secret("API key to use instead of the provider's")
    query_timeout_s: float = Field(
        6, gt=0, description="Timeout for the vector of a question, retries included, in seconds."
    )
    timeout_s: float = Field(
        120, gt=0, description="Timeout for a batch of passages, retries included, in seconds."
    )
    concurrency: int = Field(4, ge=1, le=64, description="Batches to embed concurrently.")
    price_in: float | None = Field(
        None, ge=0, description="Price of a million input tokens, in dollars."
    )


class Accounts(SettingsSection):
    """Provider keys and addresses from the providers' usual environment variables."""

    openai_key: SecretStr | None = _secret("API key for openai:…")
    openai_url: str | None = Field(None, description="Base URL for openai:….")
    openrouter_key: SecretStr | None = _secret("API key for openrouter:…")
    gemini_key: SecretStr | None = _secret("API key for gemini:…")
    cohere_key: SecretStr | None = _secret("API key for cohere:…")
    ollama_host: str | None = Field(
        None, description="Address of Ollama; port 11434 of this machine by default."
    )


class SitePart(SettingsSection):
    """Part of a book of several sources."""

    path: str = Field(description="Folder or file, below the book's folder.")
    title: str | None = Field(None, description="Title of the part.")
    format: str | None = Field(None, description="Format of the part; detected if unset.")


class Site(SettingsSection):
    """Where the book is published. Unset values are read from docusaurus.config.*."""

    url: Annotated[str, AfterValidator(_check_site)] | None = Field(
        None, description="URL of the site, without a path."
    )
    base_url: str | None = Field(None, description="Path of the site on its host.")
    route_base_path: str | None = Field(None, description="Path of the docs below the base URL.")
    trailing_slash: bool | None = Field(None, description="Docusaurus' trailingSlash.")
    locale: str | None = Field(None, description="Language of the docs folder.")
    exclude: tuple[str, ...] = Field((), description="Globs of files to leave out.")
    markdown_format: Literal["mdx", "md", "detect"] | None = Field(
        None, description="Docusaurus' markdown.format: mdx, md or detect."
    )
    format: str | None = Field(
        None, description="Format of the book, as in docs/authors/your-book.md; detected if unset."
    )
    sources: tuple[SitePart, ...] = Field(
        (),
        description="Parts of the book in order, each with `path` and, if wanted, `title` and "
        "`format`; empty: everything in the folder.",
    )


class Database(SettingsSection):
    """Database of the catalog, the threads and the query log."""

    timeout_s: float = Field(
        1.0, gt=0, description="Timeout of a database call while answering, in seconds."
    )


class RetentionSettings(SettingsSection):
    """Retention times of threads and the query log."""

    idle_minutes: float = Field(
        60, gt=0, description="Archive a thread after so many minutes without a message."
    )
    thread_days: float | None = Field(
        None,
        gt=0,
        description="Delete a thread after so many days without a message; never by default.",
    )
    query_days: float = Field(90, gt=0, description="Days to keep the query log.")


class Log(SettingsSection):
    """Logging of questions over HTTP and their outcomes, never of answers.

    The query log is stored in the database; the server also writes a JSON line per question.
    """

    queries: bool = Field(True, description="Keep a query log in the database.")
    text: bool = Field(True, description="Include question text in the query log.")
    questions: bool = Field(False, description="Include question text in the JSON request log.")


class ServerSettings(SettingsSection):
    """HTTP server."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    api_query: Literal["envelope", "plain"] = Field(
        "envelope",
        description="Contract of `POST /api/query`: envelope, or plain, as in the preset plain.",
    )
    workers: int = Field(1, ge=1, le=256, description="Worker processes; each opens the book.")
    heartbeat_s: float = Field(
        15, gt=0, description="Interval of heartbeats on an idle event stream, in seconds."
    )
    page_key: str | None = Field(
        None,
        pattern=r"^btp_\w",
        description="Publishable key that the page at / uses if the server requires keys.",
    )

    @property
    def reader(self) -> str:
        """Return the URL of the book's pages on this machine, while it is served."""
        return f"http://localhost:{self.port}/read/"


class AccessSettings(SettingsSection):
    """Access over HTTP: API keys, origins, rate limits and size limits."""

    keys: Literal["auto", "required", "open"] = Field(
        "auto",
        description="Whether requests need an API key: required, open (no key), or auto: required "
        "unless the server listens on loopback without a trusted proxy.",
    )
    pepper: SecretStr | None = _secret(
        "Secret for hashing API keys, by default a file in the home; servers that share a "
        "database need the same one",
        min_length=16,
    )
    origins: Annotated[_CommaList, AfterValidator(_check_origins)] = Field(
        (),
        description="Allowed CORS origins, such as https://book.example, besides those of "
        "publishable keys. Separated by commas in the environment.",
    )
    trusted_proxies: Annotated[_CommaList, AfterValidator(_check_networks)] = Field(
        (),
        description="Networks of reverse proxies whose X-Forwarded-For is trusted, such as "
        "10.0.0.0/8. Separated by commas in the environment.",
    )
    body_bytes: int = Field(
        128 * 1024,
        ge=1024,
        description="Largest request body, in bytes. The default fits every request within its "
        "contract's limits, in any script and with any JSON escaping.",
    )
    per_key: int = Field(
        100, ge=1, description="Requests per minute and key, in every contract but envelope."
    )
    per_session: int = Field(
        10, ge=1, description="Questions per minute and session, in the contract envelope."
    )
    per_address: int = Field(
        20, ge=1, description="Questions per minute and IP address, in the contract envelope."
    )
    per_reader: int = Field(
        600, ge=1, description="Pages and searches per minute and key or IP address, on the page."
    )
    limit_loopback: bool = Field(
        False, description="Apply rate limits also to loopback clients without a key."
    )
    streams_per_key: int = Field(
        5,
        ge=1,
        description="Concurrent answers per key and worker. Further streams are refused, other "
        "requests wait.",
    )
    rate_limit_store: Annotated[str, AfterValidator(_check_rate_limit_store)] = Field(
        "database",
        exclude=True,
        repr=False,
        description="Where rate limits are counted: database (the configured one, or a file in "
        "the home), memory (per worker), or a Redis URL such as redis://host:6379/0.",
    )
