"""Connected components of duplicates, in groups of bounded size. Start at find.py."""
