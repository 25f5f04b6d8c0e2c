"""Reading of books from files: Docusaurus, mdBook and plain Markdown."""
