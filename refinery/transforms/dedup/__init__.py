"""Exact and near duplicates, lines, substrings.

Start at deduplicate.py; a pass that cuts is declared by cutting_pass.py.
"""
