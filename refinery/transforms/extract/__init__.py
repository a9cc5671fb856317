"""From bytes of a page to text. Start at extract.py."""
