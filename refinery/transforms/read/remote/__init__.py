"""Inputs elsewhere: buckets, hubs, the web. Start at files.py."""
