"""Reading of books from files: Docusaurus, mdBook, plain Markdown, PDF."""
