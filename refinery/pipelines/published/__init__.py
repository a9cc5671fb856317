"""The door to what a run published: documents, texts, lookups, views.

Start at published.py; `refinery.corpus.open` opens it.
"""
