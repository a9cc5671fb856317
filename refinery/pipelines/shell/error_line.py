"""What an error says to people, of a message that a worker's traceback may surround."""

import re

TRACEBACK = "Traceback (most recent call last):"


def error_line(text: str) -> str:
    """The message of an error, without the worker's traceback that Beam puts in front of it.

    >>> error_line("Traceback (most recent call last):\\n  File x\\nrefinery.loader.errors.FormatError: a.bin: damaged")
    'a.bin: damaged'
    """
    if TRACEBACK not in text:
        return text
    lines = text.rstrip().splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith((" ", TRACEBACK))]
    return re.sub(r"^refinery\.[\w.]+: ", "", "\n".join(lines[frames[-1] + 1 :]).strip())
