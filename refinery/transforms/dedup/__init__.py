"""Exact duplicates, near duplicates, lines and substrings.

Start at deduplicate.py. near_duplicates.py proposes, verify_similarity.py and exact_jaccard.py decide; a pass that cuts
is declared by cutting_pass.py.
"""
