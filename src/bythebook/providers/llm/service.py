"""Language model at a hosted service: its account, limits and state shared by all calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.errors import ServiceError, Truncated
from bythebook.providers.http.circuit_breaker import CircuitBreaker
from bythebook.providers.http.client import HttpClient, Timeouts
from bythebook.providers.http.errors import translate_errors
from bythebook.providers.llm.draft import Draft, prompt_tokens

if TYPE_CHECKING:
    from bythebook.config.sections import Model
    from bythebook.interfaces.writer import Prompt
    from bythebook.providers.http.credentials import Account
    from bythebook.providers.llm.budget import Budget


@dataclass(frozen=True, slots=True)
class ModelService:
    account: Account
    settings: Model
    web: HttpClient
    budget: Budget | None = None
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    failures: list[ServiceError] = field(default_factory=list)  # the last call's, if it failed

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Translate the errors of a call, and keep how it ended."""
        try:
            with translate_errors(self.account.service):
                yield
        except ServiceError as error:
            self.failures[:] = [] if isinstance(error, Truncated) else [error]
            raise
        self.failures.clear()

    @property
    def timeouts(self) -> Timeouts:
        chosen = self.settings
        return Timeouts(chosen.timeout_s, chosen.first_token_timeout_s, chosen.idle_timeout_s)

    def draft(self, prompt: Prompt, *, max_tokens: int | None = None) -> Draft:
        most = max_tokens or self.settings.max_output_tokens
        return Draft(self.settings, prompt_tokens(prompt), most)
