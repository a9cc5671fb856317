"""Batches for training, exactly once, resumable at any row. Start at stream.py."""
