"""Jupyter Book sources."""
