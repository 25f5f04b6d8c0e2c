"""Implementations of the interfaces. Each module translates its vendor's errors into ours."""
