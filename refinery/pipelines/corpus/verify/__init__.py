"""`refinery verify`: every file and every document of a corpus checked. Start at verify.py."""
