"""A run: phases, fingerprints, reuse, publishing. Start at refine.py."""
