"""The book's pages as HTML, from the catalog alone: no source file is needed where it is served."""
