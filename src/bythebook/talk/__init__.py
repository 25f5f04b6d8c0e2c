"""Conversations: what was said before, and what a follow-up means without it."""
