"""`refinery export`, `shards`: a corpus as files of other libraries.

Start at export.py; a format is declared in formats/.
"""
