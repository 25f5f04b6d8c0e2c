"""Layout of pages: lines, columns and running heads, and the forms of text that lines have."""
