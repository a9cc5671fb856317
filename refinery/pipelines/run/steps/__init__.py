"""Runs of one step, each a recipe in a sentence: `refinery dedup`, `filter`, `extract`, `redact`, `detect-language`."""
