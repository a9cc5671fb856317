"""Which licence a text states: names, coverage by known texts, comments, files of a repository.

Start at `licenses.py`.
"""
