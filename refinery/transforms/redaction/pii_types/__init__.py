"""What personal data looks like, one family of types a file; the stage is transforms/filter/pii.py."""
