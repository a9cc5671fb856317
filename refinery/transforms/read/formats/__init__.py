"""Formats of inputs, a file each: how one is read, and its declaration, a `Reader`.

../registry.py finds them: to add a format, add a file.
"""
