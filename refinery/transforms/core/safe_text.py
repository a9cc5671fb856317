"""Text from inputs, made fit for a terminal, for JSON and for Beam."""


def safe(text: str) -> str:
    """`text` with unprintable characters escaped: line breaks, terminal codes, marks that change the direction of text.

    >>> safe("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def safe_lines(text: str) -> list[str]:
    """The lines of `text` for a terminal, each made `safe`; a tab is four spaces.

    >>> safe_lines("one\\n\\ttwo\\r")
    ['one', '    two\\\\r']
    """
    return [safe(line.replace("\t", "    ")) for line in text.split("\n")]


def printable(text: str) -> str:
    """`text` without lone surrogates, which JSON, Parquet and Beam's coders refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
