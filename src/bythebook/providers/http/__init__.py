"""HTTP client, circuit breaker, credentials and error translation."""
