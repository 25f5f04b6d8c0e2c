"""Rules and word lists for English."""
