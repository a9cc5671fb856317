"""Shards in buckets: blocks, their checksums, the cache on disk, reading ahead. Start at remote_source.py."""
