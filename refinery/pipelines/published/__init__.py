"""What a run published, opened as an object: documents, texts, lookups, views.

Start at published.py; `refinery.corpus.open` opens it.
"""
