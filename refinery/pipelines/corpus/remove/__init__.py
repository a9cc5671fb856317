"""`refinery remove`: documents taken out of a finished corpus, and put back. Start at takedown.py."""
