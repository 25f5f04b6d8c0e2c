"""Docusaurus sites: configuration, sidebars, page order and routes."""
