"""The book over HTTP."""
