"""`refinery compare`: what changed between two corpora, and by which rule. Start at compare.py."""
