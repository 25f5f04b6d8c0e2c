"""Hits in, a reply out: an answer that the book supports, or an honest refusal."""
