"""Streams of rows that the pipeline packed. Start at packed_stream.py."""
