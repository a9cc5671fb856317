"""Documents of an exported file, by the reader of its format, as in a user's program."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from refinery.loader.errors import FormatError
from refinery.pipelines.corpus.export.registry import GROUP, installed_format


def read_documents(stream: BinaryIO, name: str, form: str, fields: list[str]) -> Iterator[dict[str, Any]]:
    """The documents of a file in order, each with exactly `fields`. name: of the file. form: the export's format.

    Raises FormatError for a format that nothing installed here reads, and for other fields, and whatever the format's
    reader raises for a damaged file.
    """
    declared = installed_format(form)
    if declared is None:
        raise FormatError(
            f"{name}: the format {form!r:.60} is not built in; install the package that offers it (entry points "
            f"{GROUP}), code that an export names is not loaded"
        )
    for number, document in enumerate(declared.read(stream, name)):
        if document.keys() != set(fields):
            raise FormatError(f"{name}: document {number} has the fields {sorted(document)}, {sorted(fields)} expected")
        yield document
