"""The one error of a file that is not what the format says."""


class FormatError(ValueError):
    """Bytes are not what the format says. The message names the file and the fault."""
