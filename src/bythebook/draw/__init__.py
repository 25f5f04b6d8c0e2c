"""Markup and pictures for the reports that people read: an evaluation's, and the admin's page."""
