"""Tools over a finished corpus, a room each."""
