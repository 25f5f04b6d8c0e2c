"""Built HTML: any static site, and the documents of an EPUB file."""
