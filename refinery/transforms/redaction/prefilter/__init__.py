"""What a text must have where a pattern matches, derived from the pattern, and one fast look for all of it. Start at
`prefilter.py`."""
