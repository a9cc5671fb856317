"""The declaration of a format of exports: what writes its files and what reads them back, in its own file.

    ARROW = ExportFormat(
        name="arrow",
        version=1,
        summary="Arrow's IPC files",
        ending=".arrow",
        write=write_arrow,
        read=read_arrow,
    )

From it come what `refinery export --format` takes, names of files, what stands beside them, and how `refinery verify`
and `refinery.corpus.open` read an export. See docs/extending.md, "An export". No Beam here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from refinery.loader.format.manifest import Manifest, check_domain

# What manifests of exports call themselves. Here, since `options` needs all formats.
KIND, RUN_KIND = "refinery-export", "refinery-export-run"  # of manifest.json and _run.json
TOKENS = "torch"  # the one format of tokens without documents

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
ENDING = re.compile(r"(\.[a-z0-9_+-]+)+")
COMPRESSIONS: Mapping[str, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}  # and what they add to a name
FLAGS = ("compression", "single_file")  # of `refinery export`, which a format may take


@dataclass(frozen=True)
class FileOptions:
    """Options of a format. compression: a key of COMPRESSIONS. single_file: one file for each split."""

    compression: str = "zstd"
    single_file: bool = False


@dataclass(frozen=True)
class Written:
    """What an export holds when its files are there. corpus: the manifest of what was exported. fields, schema: of a
    row. shards: split, domain, documents and file (path, size) of each, in order. sources: documents, tokens and bytes
    of each."""

    corpus: Manifest
    fields: Sequence[str]
    schema: pa.Schema
    shards: Sequence[Mapping[str, Any]]
    sources: Mapping[str, Mapping[str, int]]


Write = Callable[[Path, pa.Schema, Iterable[pa.RecordBatch], FileOptions], None]


def shard_file(split: str, domain: str, number: str, ending: str) -> str:
    """Where a file is, unless a format says otherwise. number: "00000-of-00016".

    >>> shard_file("train", "web", "00000-of-00016", ".parquet")
    'train/web/shard-00000-of-00016.parquet'
    """
    return f"{split}/{check_domain(domain)}/shard-{number}{ending}"


def nothing(written: Written) -> Iterator[tuple[str, bytes]]:
    """For formats with nothing beside their files."""
    return iter(())


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """A format, declared. Frozen; compared by identity of its parts.

    name: what `--format` calls it, of lower-case letters, digits and hyphens. version: raised whenever the same rows
    give other bytes; part of an export's identity. summary: for the help and the table of formats. ending: of names of
    its files, before that of a compression.

    write: called as write(path, schema, batches, options); writes the rows to a new local file. The same rows give the
    same bytes: no time, no user, no order of its own. read: called as read(stream, name); yields the rows of such a
    file in order, each with exactly the fields that were written, `meta` as an object. It shares nothing with `write`,
    since `refinery verify` compares one with the other; what it raises is a failure of that file.

    flags: of FLAGS, those that it takes. file_name: of a file, called as `shard_file`. beside: the files that stand
    beside them, as (name, bytes), once all are written. libraries: distributions whose version decides the bytes.
    hidden: whether the names of the manifest and the tokenizer begin with "_", for libraries that read all else.
    """

    name: str
    version: int
    summary: str
    ending: str
    write: Write
    read: Callable[[BinaryIO, str], Iterator[dict[str, Any]]]
    flags: tuple[str, ...] = ()
    file_name: Callable[[str, str, str, str], str] = shard_file
    beside: Callable[[Written], Iterable[tuple[str, bytes]]] = nothing
    libraries: tuple[str, ...] = ()
    hidden: bool = False
    module: str = field(default="", compare=False)  # "module:NAME" of a user's own

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"export: name {self.name!r} given, lower-case letters, digits and hyphens are allowed")
        if not isinstance(self.version, int) or self.version < 1:
            raise ValueError(f"export {self.name}: version {self.version!r} given, 1 or more is allowed")
        if not ENDING.fullmatch(self.ending):
            raise ValueError(f"export {self.name}: ending {self.ending!r} given, such as '.{self.name}' is allowed")
        if unknown := [flag for flag in self.flags if flag not in FLAGS]:
            raise ValueError(f"export {self.name}: flag {unknown[0]!r} given, some of {', '.join(FLAGS)} is allowed")
        for what in ("write", "read", "file_name", "beside"):
            if not callable(getattr(self, what)):
                raise ValueError(f"export {self.name}: {what} {getattr(self, what)!r} given, a function is needed")

    def suffix(self, options: FileOptions) -> str:
        """The ending of its files."""
        return self.ending + (COMPRESSIONS[options.compression] if "compression" in self.flags else "")
