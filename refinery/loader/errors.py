"""Errors about the contents of published files."""

from collections.abc import Iterator
from contextlib import contextmanager


class FormatError(ValueError):
    """A file does not have the documented format. The message names the file and what is wrong."""


class NoTokens(FormatError):
    """A corpus of texts is where tokens are needed, such as in the loader. `what` is the corpus, or a file of it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: texts without tokens, which are needed here; run `refinery tokenize PREFIX --tokenizer … "
            "--output …`"
        )


class NoTexts(FormatError):
    """The accounts of a run whose texts are in files of the shape of its inputs, where texts are needed. `what` is the
    folder with the accounts."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: these are the accounts of a run. Its texts are in the folder of the same name without the "
            "ending; read those, or make a corpus (`--layout shards`)"
        )


class CorruptObject(FormatError):
    """Two reads gave bytes with the wrong checksum. The message names the file and both checksums."""


class CorruptShard(CorruptObject):
    """CorruptObject for a shard's file. The message names the file, the byte range or block, and both checksums."""


class InternalError(Exception):
    """Numbers in the loader do not fit together: a bug, or faulty memory. `__cause__` is what its C code says of them;
    the stream is where it was."""

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(
            f"{what}: numbers that do not fit together ({error}). This is a bug of the loader, or faulty memory: open "
            "another stream, load the last state, and report it with this message if it comes again"
        )


@contextmanager
def written_by_a_run(what: str) -> Iterator[None]:
    """Raise FormatError, naming `what`, where sealed JSON is of a shape that no run writes: what is sealed is whole,
    but anyone can seal, and not all of it is checked field by field."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise FormatError(f"{what} not as a run writes them ({type(error).__name__}: {error})") from None


def missing_file(url: str) -> FormatError:
    """The error for a file that a manifest lists and that is not there."""
    return FormatError(f"{url}: missing; `refinery verify` says what else is")
