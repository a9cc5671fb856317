"""Copies of functions in source code. Start at find.py."""
