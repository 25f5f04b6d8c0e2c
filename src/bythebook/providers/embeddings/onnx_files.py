"""Open the files of local models, verified by SHA-256: a file is used only if it was tested."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

Embed = Callable[["NDArray[np.int64]"], "NDArray[np.float32]"]  # windows -> a vector of each
Tokenize = Callable[[list[str]], list[list[int]]]  # texts -> word pieces, without special tokens

_WORD_PIECES = Path(__file__).with_name("minilm-tokenizer.json")
_WORD_PIECES_SHA256 = "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"


def read_known(path: Path, sha256: str, *, size: int = -1) -> bytes:
    """Return the content of the file, or its first ``size`` bytes; raise if the hash differs."""
    try:
        with path.open("rb") as file:
            content = file.read(size)
    except OSError:
        content = b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbedderFailed(
            f"The model file {path.name} is missing or damaged.",
            hint="Install bythebook and its packages again.",
        )
    return content


def open_session(content: bytes, weights: Mapping[str, NDArray[Any]] | None = None) -> Any:
    """Open an ONNX model for one core per run; ``weights`` are those that it does not contain.

    It reads these from their memory: keep them as long as the session.
    """
    # Telemetry would store a device id in the user's cache and send events to the vendor;
    # after the import, disable_telemetry_events() is too late for the first of them.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if weights:
        values = map(onnxruntime.OrtValue.ortvalue_from_numpy, weights.values())
        options.add_external_initializers(list(weights), list(values))
    options.intra_op_num_threads = 1  # runs are parallel instead
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])


@cache
def word_pieces() -> Tokenizer:
    """Return the tokenizer of all-MiniLM-L6-v2, which the reading model uses too."""
    from tokenizers import Tokenizer

    content = read_known(_WORD_PIECES, _WORD_PIECES_SHA256)
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()  # the file pads everything to a fixed length
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a book means these five characters
    return tokenizer


def tokenize_with(tokenizer: Tokenizer) -> Tokenize:
    encode = partial(tokenizer.encode_batch_fast, add_special_tokens=False)
    return lambda texts: [encoding.ids for encoding in encode(texts)]
