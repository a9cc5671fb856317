"""Stages that judge a document, a file each: url.py, language.py, heuristics.py, quality.py, pii.py and more."""
