"""Inputs as documents: formats, splitting, damaged records. Start at reader.py; a format is declared in formats/."""
