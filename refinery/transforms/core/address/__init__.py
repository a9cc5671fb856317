"""Addresses of pages: hosts, and which addresses mean one page. Start at normalise.py."""
