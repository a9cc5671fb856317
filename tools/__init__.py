"""Pages about the whole command line, made from it."""
