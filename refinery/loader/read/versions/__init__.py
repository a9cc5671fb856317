"""Earlier versions of a corpus, so training goes on where documents were removed. Start at past.py."""
