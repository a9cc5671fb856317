"""Tokens and tables of a corpus, wherever it is.

Start at corpus.py (one opened corpus) and token_source.py (its tokens).
"""
