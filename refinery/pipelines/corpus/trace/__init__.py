"""`refinery trace`: what became of a page, of a passage, of a token. Start at trace_documents.py."""
