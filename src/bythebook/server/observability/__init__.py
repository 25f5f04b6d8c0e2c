"""Logging, metrics and health."""
