"""Passages in, a searchable book out."""
