"""Earlier versions of a corpus, so that training goes on where documents were removed. Start at past.py."""
