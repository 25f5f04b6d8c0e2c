"""Build replies from search hits: an answer that the book supports, or a refusal."""
