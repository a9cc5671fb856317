"""Checks that `verify` shares between corpora, exports and views.

Start at file_checks.py.
"""
