"""Admin report for the author: statistics, and topics that the book does not cover."""
