"""Indexing of passages: embeddings, generations, calibration and integrity checks."""
