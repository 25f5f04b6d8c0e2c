"""Formats for By the Book: PDF, built HTML, EPUB, Jupyter notebooks and Jupyter Book."""
