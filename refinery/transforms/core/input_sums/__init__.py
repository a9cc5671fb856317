"""Checksums of inputs, while they are read. Start at file_read.py."""
