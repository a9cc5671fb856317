"""Spans of a text that are moved when it is edited. Start at marks.py."""
