"""What readers ask, for the author: figures, and topics that the book does not cover."""
