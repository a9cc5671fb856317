"""Batches of what deduplication knows of documents, and the order in which it prefers them.

Start at record_batch.py.
"""
