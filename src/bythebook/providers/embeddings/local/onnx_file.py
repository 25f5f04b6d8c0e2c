"""Minimal writer of ONNX files.

ONNX is a protocol buffer with few kinds of fields, and our graphs use only some of them. Writing
them here avoids 40 MB of dependencies, and gives the same bytes on every machine and with every
version of those packages, so that a graph can be verified by its SHA-256.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

MICROSOFT = "com.microsoft"  # domain of ONNX Runtime's own operations
FLOAT, INT64 = 1, 7  # element types, as onnx.proto numbers them
_TYPES = {"float32": FLOAT, "uint8": 2, "int8": 3, "int64": INT64}
_IR_VERSION, _OPSET = 10, 21


class Graph:
    """ONNX graph under construction. Values have string names; an operation has one output."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        dims = b"".join(_number(1, size) for size in array.shape)
        little_endian = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        self._constants.append(
            dims
            + _number(2, _TYPES[array.dtype.name])
            + _text(8, name)
            + _bytes(9, little_endian.tobytes())
        )
        return name

    def add(self, operation: str, *inputs: str, domain: str = "", **attributes: float | int) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(
            b"".join(_text(1, each) for each in inputs)
            + _text(2, name)
            + _text(4, operation)
            + b"".join(_bytes(5, _attribute(key, value)) for key, value in attributes.items())
            + _text(7, domain)
        )
        return name

    def to_bytes(self, *, inputs: Iterable[bytes], outputs: Iterable[bytes]) -> bytes:
        graph = b"".join(
            [
                *(_bytes(1, node) for node in self._nodes),
                _text(2, "embedder"),
                *(_bytes(5, constant) for constant in self._constants),
                *(_bytes(11, each) for each in inputs),
                *(_bytes(12, each) for each in outputs),
            ]
        )
        return b"".join(
            [
                _number(1, _IR_VERSION),
                _text(2, "bythebook"),
                _bytes(7, graph),
                _bytes(8, _text(1, "") + _number(2, _OPSET)),
                _bytes(8, _text(1, MICROSOFT) + _number(2, 1)),
            ]
        )


def tensor(name: str, element: int, *sizes: str | int) -> bytes:
    """Describe an input or output; a size is a number, or a name if it is dynamic."""
    dims = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in sizes
    )
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, element) + _bytes(2, dims)))


def _attribute(name: str, value: float | int) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    return _text(1, name) + _number(3, value) + _number(20, 2)


def _varint(number: int) -> bytes:
    number &= 0xFFFF_FFFF_FFFF_FFFF  # two's complement for negative numbers
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
