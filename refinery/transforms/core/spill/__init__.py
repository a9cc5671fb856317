"""Sorting on disk what does not fit in memory. Start at sorted_rows.py."""
