"""HTTP server of the book."""
