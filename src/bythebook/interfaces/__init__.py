"""Protocols that the pipeline uses and the providers implement."""
