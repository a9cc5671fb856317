"""Shards on this machine, mapped into memory. Start at local_source.py."""
