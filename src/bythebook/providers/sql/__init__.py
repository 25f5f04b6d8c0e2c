"""SQLite and PostgreSQL: catalog, threads, query log, API keys, rate limits, stored replies."""
