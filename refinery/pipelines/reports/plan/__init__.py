"""`refinery plan`: what a corpus will take. Start at formulas.py."""
