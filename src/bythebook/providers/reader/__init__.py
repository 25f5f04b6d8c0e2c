"""Local reading model on ONNX Runtime: answerability, answer spans and sentence support."""

from bythebook.providers.reader.local import LocalReader

__all__ = ["LocalReader"]
