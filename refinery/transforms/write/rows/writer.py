"""The writer of files of the inputs' own shape, declared. Of a shard it writes only the provenance; the rows go
to files beside the corpus, as write_files.py copies them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from refinery.transforms.core.stage import ShardContent, Writer

LAYOUT = "as-input"  # in a recipe


def write_nothing(paths: Mapping[str, Path], shard: ShardContent) -> None:
    """Rows are copied from the inputs."""


def read_nothing(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    """Its shards hold no texts. Raises ValueError."""
    raise ValueError("the texts are in the files of the output, which have the shape of the inputs")


AS_INPUT = Writer(
    name=LAYOUT,
    version=1,
    summary="Copy the rows that stay to files of the shape of the inputs, and write where they came from.",
    uses=("name", "columns"),
    libraries=("pyarrow",),
    files={},
    write=write_nothing,
    read=read_nothing,
)
