"""The book as Markdown, for the command line and the server."""
