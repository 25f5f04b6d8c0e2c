"""One file for each contract: its wire models, and ``read``, ``show`` and ``fail``.

The wire's own words (chunk, source, session) stay in here.
"""
