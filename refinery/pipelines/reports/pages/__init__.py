"""What pages of HTML are made of; nothing in them runs code from a corpus. Start at page.py."""
