"""What ends a command of a run by slices with a message to its user."""


class SliceError(RuntimeError):
    """A slice that cannot be done, or not yet; the message is one line for the user."""
