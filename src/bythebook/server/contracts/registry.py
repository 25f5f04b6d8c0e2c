"""All contracts of the server. To add one, declare it and add it here."""

from __future__ import annotations

from fastapi import APIRouter

from bythebook.server.contracts import chat, openai, questions
from bythebook.server.contracts.base import Services

CONTRACTS = {
    contract.name: contract
    for contract in (
        questions.QUERY,
        questions.ASK,
        questions.ENVELOPE,
        questions.PLAIN,
        chat.CONTRACT,
        openai.CONTRACT,
    )
}


def contract_routers(services: Services) -> list[APIRouter]:
    return [contract.router(services) for contract in CONTRACTS.values()]
