"""What a corpus' writer states in manifest.json: which files each shard has, and whether they hold tokens or texts.

A corpus of tokens has Megatron's indexed data sets, which this package reads; it states `dtype`, `dtype_code` and
`tokenizer`, and counts tokens. A corpus of texts states `shard_files`, kind and ending of each, and has
none of these; where the only kind is `provenance`, the texts are a column of it. It states no kind at all where the
texts are in files of their own, beside the corpus. docs/format.md is the specification.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from refinery.loader.errors import FormatError, NoTokens
from refinery.loader.format.fields import Fields
from refinery.loader.format.indexed import DTYPES, WRITTEN
from refinery.loader.format.provenance import ADOPTED

WRITER = "megatron"  # the writer whose tokens this package reads
MASKED = "megatron-masked"  # the same, of a corpus that says which tokens are trained (loss_runs.py)
STATED = "shard_files"  # the section of a writer of texts
SECTIONS = ("writer", "dtype", "dtype_code", "tokenizer", STATED)  # of manifest.json, that a writer states
PROVENANCE = ("provenance", ".provenance.parquet")
MEGATRON_FILES = (("bin", ".bin"), ("idx", ".idx"))
BESIDE = "as-input"  # the writer whose texts are in files of the shape of the inputs, beside the corpus: it has no kind
RESERVED = ("bin", "idx", "provenance", "packed")  # kinds that no writer of texts may have beside others
WITH_TEXT = ("provenance", ".parquet")  # of a writer whose one file holds the texts as a column of the provenance
KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")
ENDING = re.compile(r"(\.[a-z0-9_+-]+)+")
CONTENT = ""  # where a kind is asked for: the one with the documents
MOST_KINDS = 8
MAX_ID = 2**31 - 1  # of a token: int32 is the largest dtype


@dataclass(frozen=True, slots=True)
class TokenizerEntry:
    """path: the tokenizer's file below the prefix. bos_id, eos_id: None if documents have none."""

    path: str
    vocab_size: int
    bos_id: int | None
    eos_id: int | None


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What a writer of tokens states of them. dtype: "uint16", say, and its code in an index."""

    dtype: str
    dtype_code: int
    tokenizer: TokenizerEntry


@dataclass(frozen=True)
class WrittenFiles:
    """The files of each shard. endings: (kind, ending) in the order of listings; the first one holds the documents, the
    last one is their provenance, which an adopted corpus alone has not. One file may be both."""

    writer: str
    endings: tuple[tuple[str, str], ...]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds alone."""
        return tuple(kind for kind, _ in self.endings)

    @property
    def has_tokens(self) -> bool:
        """Whether shards hold tokens, in Megatron's files; else texts."""
        return self.kinds[0] == "bin"

    @property
    def is_masked(self) -> bool:
        """Whether a column of the provenance says which tokens are trained."""
        return self.writer == MASKED

    @property
    def has_provenance(self) -> bool:
        return self.kinds[-1] == "provenance"

    @property
    def has_text_column(self) -> bool:
        """Whether the texts are a column of the provenance, which is the only file of a shard then."""
        return self.endings == (WITH_TEXT,)

    @property
    def has_texts(self) -> bool:
        """Whether its shards hold the documents' texts, in whatever file."""
        return not self.has_tokens and self.endings != (PROVENANCE,)

    @property
    def own(self) -> tuple[tuple[str, str], ...]:
        """Those that the writer writes."""
        return self.endings if self.has_text_column or not self.has_provenance else self.endings[:-1]

    @property
    def holding(self) -> int:
        """How many files of a shard, the first ones, count as those that hold its documents: at least one."""
        return max(1, len(self.kinds) - self.has_provenance)

    def place(self, kind: str, what: str) -> int:
        """Which of a shard's files is of that kind. Raises NoTokens, naming `what`, for one of tokens among texts."""
        if kind == CONTENT:
            return 0
        if kind not in self.kinds and not self.has_tokens:
            raise NoTokens(what)
        return self.kinds.index(kind)


OF_TOKENS = WrittenFiles(WRITER, (*MEGATRON_FILES, PROVENANCE))
OF_ADOPTED = WrittenFiles(WRITER, MEGATRON_FILES)


def parse_written(top: Fields, lane: str) -> tuple[WrittenFiles, TokenFacts | None]:
    """The files that a manifest's writer states, and what it states of tokens; None for texts. Raises FormatError."""
    writer = top.text("writer")
    if STATED in top.value:
        stated = _stated(top)
        return WrittenFiles(writer, stated if stated == (WITH_TEXT,) else (*stated, PROVENANCE)), None
    if writer not in (WRITER, MASKED):
        raise FormatError(
            f"{top.where}: writer is {writer!r:.80}, this reader supports {WRITER!r}, and any with {STATED!r}"
        )
    found = OF_ADOPTED if lane == ADOPTED else OF_TOKENS
    return (found if writer == WRITER else replace(found, writer=writer)), _tokens(top, lane)


def _stated(top: Fields) -> tuple[tuple[str, str], ...]:
    found = tuple((entry.text("kind"), entry.text("ending")) for entry in top.list(STATED))
    if wrong := "" if not found and top.text("writer") == BESIDE else files_fault(found):
        raise FormatError(f"{top.where}: {STATED}: {wrong}")
    return found


def files_fault(endings: Sequence[tuple[str, str]]) -> str:
    """Why shards of text may not have files of these kinds and endings, "" if they may."""
    if tuple(endings) == (WITH_TEXT,):
        return ""
    kinds = [kind for kind, _ in endings]
    if not 1 <= len(kinds) <= MOST_KINDS or len({*kinds}) < len(kinds):
        return f"kinds {kinds!r:.200} given, 1 to {MOST_KINDS} different ones are allowed"
    for kind, ending in endings:
        if not KIND.fullmatch(kind) or kind in RESERVED:
            return f"kind {kind!r:.80} given, a lower-case name other than {', '.join(RESERVED)} is allowed"
        if not ENDING.fullmatch(ending) or PROVENANCE[1] == ending:
            return f"ending {ending!r:.80} given, such as '.jsonl.zst' is allowed"
    if len({ending for _, ending in endings}) < len(kinds):
        return "one ending given twice"
    return ""


def _tokens(top: Fields, lane: str) -> TokenFacts:
    code = top.count("dtype_code")
    allowed = DTYPES if lane == ADOPTED else WRITTEN
    if code not in allowed or top.text("dtype") != DTYPES[code].name:
        known = " or ".join(f"{DTYPES[each].name} and {each}" for each in allowed)
        raise FormatError(f"{top.where}: dtype is {top.text('dtype')!r:.80} and dtype_code {code}, {known} expected")
    tokenizer = top.inner("tokenizer")
    entry = TokenizerEntry(
        tokenizer.path("path"),
        tokenizer.count("vocab_size"),
        tokenizer.optional_count("bos_id", MAX_ID),
        tokenizer.optional_count("eos_id", MAX_ID),
    )
    return TokenFacts(top.text("dtype"), code, entry)
