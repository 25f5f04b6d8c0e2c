"""Conversations: threads, follow-up rewriting, the query log and retention."""
