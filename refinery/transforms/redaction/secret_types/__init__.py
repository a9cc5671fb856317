"""What credentials look like, a family of issuers a file.

Start at find.py; the stage is transforms/filter/secrets_stage.py.
"""
