"""Language-dependent text processing."""
