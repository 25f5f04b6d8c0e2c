"""Parsing of Markdown and MDX into blocks."""
