"""Retrieval: hybrid search, calibrated scoring and ranking of passages."""
