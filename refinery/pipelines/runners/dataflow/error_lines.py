"""What a job on another machine says of its failure, as one line that quotes no document."""

import re

from refinery.transforms.core.safe_text import safe

ERROR_CHARS = 300
# Our own exceptions, whose messages never hold a document's text. Of all others only the type is shown.
_OWN = re.compile(r"refinery\.[\w.]+: ")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*: |[A-Za-z_][\w.]*(?:Error|Exception)\b")
_STEP = re.compile(r"\[while running '[^']{1,200}'\]")


# What Beam says of a worker that ended while its output was read, and what that means.
GONE = {
    "RuntimeError: Channel closed prematurely.": "a worker process has ended; it was killed, or ran out of memory",
}


def short_error(text: str) -> str:
    """A job's error message as one line that holds no document's content.

    For a traceback: the last exception, with its message if it is one of ours (these never quote a document), and its
    step. For anything else: the first line.

    >>> short_error("Traceback (most recent call last):\\n  File ...\\nKeyError: 'secret' [while running 'pii']")
    "KeyError [while running 'pii']"
    """
    if "Traceback (most recent call last)" not in text:
        return cut(text.strip().partition("\n")[0])
    step = "".join(_STEP.findall(text)[-1:])
    for line in reversed(text.splitlines()):
        if line.strip() in GONE:
            return GONE[line.strip()]
        if _EXCEPTION.match(line):
            said = line if _OWN.match(line) else line.partition(":")[0].split(" ")[0]
            said = _STEP.sub("", said).strip()
            return cut(f"{said} {step}".strip())
    return cut(f"an unnamed exception {step}".strip())


def cut(text: str) -> str:
    """`text` made safe to print, and not too long."""
    return safe(text if len(text) <= ERROR_CHARS else text[: ERROR_CHARS - 1] + "…")
