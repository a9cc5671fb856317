"""What users give, made fit for scripts: one line, quoted, and without credentials."""

import os
import re
import shlex
from collections.abc import Iterable, Sequence

# Folders of a job: a value that begins with a variable, which the shell of the job expands.
VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)\}|(?P<plain>[A-Za-z_]\w*))(?P<rest>(?:/.*)?)", re.DOTALL)
STEP = re.compile(r"[a-z][a-z0-9-]{0,24}")  # names of steps: they become names of files, jobs and variables
SIGNED = re.compile(r"[?&](X-Amz-Signature|X-Goog-Signature|Signature|sig)=", re.IGNORECASE)  # of addresses
# In lines of #SBATCH: quotes, comments and patterns of file names have a meaning there.
SPECIAL = frozenset("'\"\\#%`$")


def one_line(what: str, value: str) -> str:
    """`value`, if a line of a script can have it. Raises ValueError for line breaks and other control characters,
    also for what the file system holds but UTF-8 cannot say."""
    if not value.isprintable():
        raise ValueError(f"{what}: {value!r:.200} given; a script cannot have characters that do not print")
    return value


def quoted(words: Iterable[str]) -> str:
    """Words of a command for a shell. Raises ValueError as `one_line`."""
    return " ".join(shlex.quote(one_line("argument", word)) for word in words)


def folder_word(what: str, value: str) -> str:
    """A folder for a shell. A variable at its beginning stays one, and the job ends where it is not set.

    >>> folder_word("--scratch", "$TMPDIR/a b"), folder_word("--scratch", "/local/$USER")
    ('"${TMPDIR:?is not set}"\\'/a b\\'', "'/local/$USER'")
    """
    if found := VARIABLE.fullmatch(one_line(what, value)):
        rest = shlex.quote(found["rest"]) if found["rest"] else ""
        return f'"${{{found["braced"] or found["plain"]}:?is not set}}"{rest}'
    return shlex.quote(value)


def plain(what: str, value: str) -> str:
    """`value`, if it means itself in a line of #SBATCH. Raises ValueError for others."""
    if strange := sorted(SPECIAL & {*one_line(what, value)}):
        raise ValueError(f"{what}: {value!r:.200} given; {' '.join(strange)} have a meaning in a line of #SBATCH")
    return value


def check_no_secrets(words: Sequence[str]) -> None:
    """Scripts and objects are read by others. Raises ValueError for words that look like credentials."""
    from refinery.pipelines.runners.dataflow.flag_checks import KEY, NOT_SECRET, SECRET_NAME

    for word in words:
        keys = {key for found in KEY.finditer(word) for key in found.groups() if key} - NOT_SECRET
        if looks_secret(word) or any(SECRET_NAME.search(key) for key in keys):
            raise ValueError(
                f"{word.split('=')[0]!r:.80}: a value looks like a credential, and scripts are readable by others; set "
                "it in the environment of the jobs"
            )


def looks_secret(text: str) -> bool:
    """Whether keys, tokens or passwords of common forms are in a text, or the signature of an address."""
    from refinery.pipelines.runners.dataflow.flag_checks import SECRET_VALUE

    return bool(SECRET_VALUE.search(text) or SIGNED.search(text))


def absolute(location: str) -> str:
    """A location that means the same in every folder."""
    return location if not location or "://" in location else os.path.abspath(location)
