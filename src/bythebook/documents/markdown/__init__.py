"""The book as Markdown: ``llms.txt``, ``llms-full.txt`` and one file per page."""
