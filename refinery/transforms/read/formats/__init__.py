"""One file for each format of sources: how it is read, and its declaration, a `Reader`.

`registry.py` finds every declaration in here by itself: a format is added by adding its file.
"""
