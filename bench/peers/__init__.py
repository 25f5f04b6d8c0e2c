"""By the Book and its peers, measured side by side; ``python bench/peers.py`` is the door."""
