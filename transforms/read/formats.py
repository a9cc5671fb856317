"""Formats of input files: which one a name stands for, and which are read from end to end. Without Beam."""

import re

from refinery.transforms.read.params import Format

COMPRESSIONS = ("", ".gz", ".zst", ".lz4")
ENDINGS: dict[str, Format] = {".warc": "warc", ".wet": "wet", ".arc": "arc"}
ENDINGS |= {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
ENDINGS |= {".csv": "csv", ".tsv": "tsv", ".txt": "text", ".html": "text", ".htm": "text"}

IN_PIECES: frozenset[Format] = frozenset({"parquet", "documents"})  # read where a footer says, so without a checksum


def format_of(path: str, source: str) -> Format:
    """The format that the ending of `path` stands for. Raises ValueError, which names the source, for another one."""
    if re.search(r"\.wat(\.gz|\.zst|\.lz4)?$", path.lower()):
        raise ValueError(
            f"source {source}: {path} is WAT: it holds links and headers, and no text; read the WARC or WET file "
            "of the same name"
        )
    for compression in COMPRESSIONS:
        for ending, name in ENDINGS.items():
            if path.lower().endswith(ending + compression) and (name != "parquet" or not compression):
                return name
    allowed = f"{', '.join(ENDINGS)} (all but .parquet also with {', '.join(COMPRESSIONS[1:])})"
    raise ValueError(f"source {source}: format: {path} has an unknown ending, allowed are {allowed}; or name a format")
