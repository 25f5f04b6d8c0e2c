"""Passage stores in memory."""
