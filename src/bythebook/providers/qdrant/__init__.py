"""Qdrant stores: embedded, server or cluster, and collections of other systems."""
