"""What ends a run with a word to its user."""


class RefineError(RuntimeError):
    """A run that must not go on; the message is one or a few lines for the user."""
