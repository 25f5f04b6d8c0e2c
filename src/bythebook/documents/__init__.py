"""Documents independent of HTTP: the JSON of replies, and the book as Markdown.

For the Python API, the command line and the server.
"""
