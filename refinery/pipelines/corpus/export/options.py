"""What an export is asked for: the format, the fields of a row, how files are compressed and cut."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from refinery.loader.format.document_fields import EXPORTS, names_of
from refinery.loader.format.manifest import Column
from refinery.loader.read.loss_runs import COLUMN
from refinery.pipelines.corpus.export.export_format import COMPRESSIONS, FLAGS, TOKENS, ExportFormat, FileOptions
from refinery.pipelines.corpus.export.registry import export_formats, load_format
from refinery.pipelines.recipe.user_stages import NO_CODE, UserCode
from refinery.transforms.core.wording import meant, nearest

DTYPES = ("int64", "int32")  # of PyTorch shards
SHARD_TOKENS = 2_500_000

WORK = "_export"  # below an export: task lists, records of what is done, the job's report; removed at the end

MEGATRON = "megatron"  # a corpus of its own (refinery.pipelines.corpus.adopt.megatron_export), not one of ExportOptions


def format_names() -> tuple[str, ...]:
    """The formats of ours: of texts, then that of tokens."""
    return (*export_formats(), TOKENS)


@dataclass(frozen=True)
class ExportOptions:
    """format: TOKENS, or whatever `load_format` takes. fields: of a row, () for all but input_ids. compression: "" for
    zstd; single_file: one file for each split; both of formats that take them. shard_tokens, dtype: of PyTorch shards.
    """

    format: str
    fields: tuple[str, ...] = ()
    compression: str = ""
    single_file: bool = False
    shard_tokens: int = SHARD_TOKENS
    dtype: str = "int64"

    def __post_init__(self) -> None:
        if self.compression not in ("", *COMPRESSIONS):
            hint = nearest(self.compression, COMPRESSIONS)
            raise ValueError(f"--compression: {self.compression!r:.80} given, {hint}")
        if self.dtype not in DTYPES:
            raise ValueError(f"--dtype: {self.dtype!r} given, {' or '.join(DTYPES)} is allowed")
        if not 1 <= self.shard_tokens < 2**31:
            raise ValueError(f"--shard-tokens: {self.shard_tokens} given, 1 to {2**31 - 1} is allowed")
        flags = () if self.format == TOKENS else self.declared.flags
        for flag in FLAGS:
            if getattr(self, flag) and flag not in flags:
                takers = [each.name for each in export_formats().values() if flag in each.flags]
                named = f"--{flag.replace('_', '-')}"
                raise ValueError(f"{named}: given with --format {self.format}, it is for --format {', '.join(takers)}")
        of_tokens = {"--shard-tokens": self.shard_tokens != SHARD_TOKENS, "--dtype": self.dtype != DTYPES[0]}
        for named, is_set in of_tokens.items():
            if is_set and self.format != TOKENS:
                raise ValueError(f"{named}: given with --format {self.format}, it is for --format {TOKENS}")
        if self.fields and self.format == TOKENS:
            raise ValueError(f"--fields: given with --format {TOKENS}, whose shards hold only tokens")

    @property
    def declared(self) -> ExportFormat:
        """The declaration of a format of texts. Raises ValueError as `load_format`."""
        return self._loaded[0]

    @property
    def code(self) -> UserCode:
        """The code of a format of the user's own."""
        return NO_CODE if self.format == TOKENS else self._loaded[1]

    @cached_property
    def _loaded(self) -> tuple[ExportFormat, UserCode]:
        """The format, loaded once, not for every shard."""
        return load_format(self.format, also=(TOKENS,))

    def __getstate__(self) -> dict[str, Any]:
        """What travels to workers, which load a format of the user's own by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def files(self) -> FileOptions:
        """The options for the format."""
        return FileOptions(self.compression or "zstd", self.single_file)

    def plain(self) -> dict[str, Any]:
        """What decides the files, as plain data."""
        if self.format == TOKENS:
            return {"format": TOKENS, "shard_tokens": self.shard_tokens, "dtype": self.dtype}
        declared = self.declared
        found: dict[str, Any] = {"format": declared.name, "fields": list(self.fields)}
        found |= {flag: getattr(self, flag) for flag in declared.flags}
        if declared.version > 1 or declared.module:
            found["version"] = declared.version
        return found | ({"code": self.code.digest()} if declared.module else {})


def all_fields(columns: Sequence[Column]) -> tuple[str, ...]:
    """Every field that a row can have, in order. columns: of the corpus' provenance."""
    own = names_of(EXPORTS)
    behind = 1 + own.index("origin")
    return (*own[:behind], *(column.name for column in columns), *own[behind:])


def chosen_fields(options: ExportOptions, columns: Sequence[Column], is_masked: bool = False) -> tuple[str, ...]:
    """The fields of a row, in the order of `all_fields`. is_masked: of a corpus with loss masks, which count tokens.

    Raises ValueError for a field that no row has, and for documents without their masks.
    """
    known = all_fields(columns)
    if not options.fields:
        return tuple(name for name in known if name != "input_ids" or is_masked)
    if unknown := [name for name in options.fields if name not in known]:
        hint = meant(unknown[0], known, "") or f"some of {', '.join(known)} is allowed"
        raise ValueError(f"--fields: {unknown[0]!r:.80} given, {hint}")
    mask = {"input_ids", COLUMN}
    if is_masked and {"text", *mask}.intersection(options.fields) and not mask.issubset(options.fields):
        raise ValueError(
            f"--fields: documents without input_ids or {COLUMN} given, of a corpus with loss masks, which would be "
            "lost; name both, or leave --fields out"
        )
    return tuple(name for name in known if name in options.fields)
