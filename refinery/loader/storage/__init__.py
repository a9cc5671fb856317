"""Local folders, Cloud Storage, S3 and the web behind one protocol: ranges, exclusive creation, checksums, retries.

Start at store.py.
"""
