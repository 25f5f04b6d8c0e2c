"""Alembic's history of the schema."""
