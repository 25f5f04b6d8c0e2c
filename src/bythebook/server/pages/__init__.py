"""The book's pages as HTML, built from the catalog: the server needs no source files."""
