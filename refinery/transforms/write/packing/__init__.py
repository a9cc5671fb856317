"""Rows packed while a shard is written. Start at write_packed.py."""
