"""ASGI middleware: context, errors, authentication, limits, CORS, idempotency."""
