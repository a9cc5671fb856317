"""Which encoding a page has. Start at guess.py."""
