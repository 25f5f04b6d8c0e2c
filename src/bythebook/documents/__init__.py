"""JSON documents of replies, independent of HTTP: for the Python API, the CLI and contracts."""
