"""Embedding models: local and hosted."""
