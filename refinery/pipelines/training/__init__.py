"""Tokenizers, classifiers and language models, learned from documents. A file for each command."""
