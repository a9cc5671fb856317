"""The pages of `refinery browse`, a file each, as HTML that needs no script. What all have in common is in frame.py."""
