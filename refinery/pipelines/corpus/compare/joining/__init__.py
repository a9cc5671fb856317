"""Two corpora, document by document, joined on disk. Start at join.py."""
