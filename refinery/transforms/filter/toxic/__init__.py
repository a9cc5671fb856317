"""Which words are toxic, in which disguise, and what merely mentions them. Start at words.py."""
