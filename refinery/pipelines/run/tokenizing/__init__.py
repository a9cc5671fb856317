"""`refinery tokenize`: a corpus of tokens from a corpus of texts."""
