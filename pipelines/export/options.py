"""What an export is asked for: the format, the fields of a row, how files are compressed and cut."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refinery.loader.format.manifest import Column

COMPRESSIONS = {"none": "", "gzip": ".gz", "zstd": ".zst"}  # of JSONL, and what they add to a name
DTYPES = ("int64", "int32")  # of PyTorch shards
SHARD_TOKENS = 2_500_000

KIND, RUN_KIND = "refinery-export", "refinery-export-run"  # of manifest.json and _run.json
WORK = "_export"  # below an export: task lists, records of what is done, the job's report; removed at the end

TOKENS = "torch"  # the one format of tokens without documents
TEXTS = ("jsonl", "parquet", "huggingface", "webdataset", "mds")
FORMATS = (*TEXTS, TOKENS)
MEGATRON = "megatron"  # a corpus of its own (refinery.pipelines.adopt.megatron_export), not one of ExportOptions

BEFORE = ("id", "url", "source", "domain", "origin")
AFTER = ("copies", "sources", "text_bytes", "token_count", "meta", "text", "input_ids")


@dataclass(frozen=True)
class ExportOptions:
    """format: one of FORMATS. fields: of a row, () for all but input_ids. compression: of JSONL, "" for zstd.
    single_file: JSONL, one file for each split. shard_tokens, dtype: of PyTorch shards.
    """

    format: str
    fields: tuple[str, ...] = ()
    compression: str = ""
    single_file: bool = False
    shard_tokens: int = SHARD_TOKENS
    dtype: str = "int64"

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"--format: {self.format!r} given, one of {', '.join(FORMATS)} is allowed")
        if self.compression not in ("", *COMPRESSIONS):
            raise ValueError(f"--compression: {self.compression!r} given, {', '.join(COMPRESSIONS)} is allowed")
        if self.dtype not in DTYPES:
            raise ValueError(f"--dtype: {self.dtype!r} given, {' or '.join(DTYPES)} is allowed")
        if not 1 <= self.shard_tokens < 2**31:
            raise ValueError(f"--shard-tokens: {self.shard_tokens} given, 1 to {2**31 - 1} is allowed")
        for flag, is_set, owner in (
            ("--compression", bool(self.compression), "jsonl"),
            ("--single-file", self.single_file, "jsonl"),
            ("--shard-tokens", self.shard_tokens != SHARD_TOKENS, TOKENS),
            ("--dtype", self.dtype != DTYPES[0], TOKENS),
        ):
            if is_set and self.format != owner:
                raise ValueError(f"{flag}: given with --format {self.format}, it is for --format {owner}")
        if self.fields and self.format == TOKENS:
            raise ValueError(f"--fields: given with --format {TOKENS}, whose shards hold tokens alone")

    def plain(self) -> dict[str, Any]:
        """What decides the files, as plain data."""
        used = {
            TOKENS: ("format", "shard_tokens", "dtype"),
            "jsonl": ("format", "fields", "compression", "single_file"),
        }.get(self.format, ("format", "fields"))
        return {
            name: list(value) if name == "fields" else value for name, value in asdict(self).items() if name in used
        }


def all_fields(columns: Sequence[Column]) -> tuple[str, ...]:
    """Every field that a row can have, in order. columns: of the corpus' provenance."""
    return (*BEFORE, *(column.name for column in columns), *AFTER)


def chosen_fields(options: ExportOptions, columns: Sequence[Column]) -> tuple[str, ...]:
    """The fields of a row, in the order of `all_fields`. Raises ValueError for one that no row has."""
    known = all_fields(columns)
    if not options.fields:
        return tuple(name for name in known if name != "input_ids")
    if unknown := [name for name in options.fields if name not in known]:
        raise ValueError(f"--fields: {unknown[0]!r} given, some of {', '.join(known)} is allowed")
    return tuple(name for name in known if name in options.fields)
