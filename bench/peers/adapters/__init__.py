"""One file for each system: how its own documentation says to index and to search a folder."""
