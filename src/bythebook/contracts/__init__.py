"""The five data models that the book is asked by, a module each, with their fields and rules.

============  =============================  ==================================
module        data model                     how a refusal is reported
============  =============================  ==================================
``query``     Book RAG Agent                 ``is_refusal``, ``refusal_reason``
``ask``       Agent Construction             ``has_relevant_context: false``
``envelope``  Answer Generation Agent        ``status: "refused"``
``plain``     RAG Chatbot Backend            the answer's text, ``sources: []``
``chat``      RAG Agent API                  ``should_answer: false``
============  =============================  ==================================

The server, the command line and Python programs use the same classes. In each module, ``read``
converts a request to a question, ``show`` a reply to a response and ``fail`` an error to a status
and a body; the functions below them work with an open book. Fields that a data model does not have
are marked as ``Extension``. The terms of the wire (chunk, source, session) are used only here and
in ``bythebook.server.contracts``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

    from bythebook.types import Reply


def response_of(contract: str, reply: Reply) -> BaseModel:
    """Return the reply as the response of a contract."""
    response: BaseModel = import_module(f"{__name__}.{contract}").show(reply)
    return response
