"""The index from addresses and ids to documents. Start at write_lookup.py."""
