"""All contracts of the server. To add one, write its module and add it here."""

from __future__ import annotations

from fastapi import APIRouter

from bythebook.server.contracts import ask, chat, envelope, openai, plain, query
from bythebook.server.contracts.base import Services

CONTRACTS = {
    contract.name: contract
    for contract in (
        query.CONTRACT,
        ask.CONTRACT,
        envelope.CONTRACT,
        plain.CONTRACT,
        chat.CONTRACT,
        openai.CONTRACT,
    )
}


def contract_routers(services: Services) -> list[APIRouter]:
    return [contract.router(services) for contract in CONTRACTS.values()]
