"""Codes of languages, and settings that differ by language. Start at codes.py."""
