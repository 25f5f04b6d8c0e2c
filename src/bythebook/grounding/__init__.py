"""Split a draft into sentences and verify each against the evidence."""
