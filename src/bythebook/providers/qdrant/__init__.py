"""Qdrant stores: server or cluster, and collections of other systems."""
