"""`refinery show`, `sample`: documents to read. Start at show.py."""
