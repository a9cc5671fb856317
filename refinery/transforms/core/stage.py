"""The declaration of a stage: everything that the rest of the project must know of it, in the stage's own file.

    DIGITS = Stage(
        name="digits",
        version=1,
        summary="Drop documents that are mostly digits.",
        params=DigitsParams,
        judge=judge_digits,
        reasons=(Reason("digit-ratio", "more than `max_ratio` of the characters are digits"),),
    )

From it come the recipe's section, the fingerprint, the check of files before a run, the funnel's order, the provenance
columns, `refinery stages`, the pages and the JSON schema. A declaration is also the PTransform's factory:
`docs | DIGITS(DigitsParams(max_ratio=0.5))`. See docs/extending.md, "A filter".
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, TypeVar

from refinery.loader.format.kept_columns import KeptColumn
from refinery.loader.format.provenance import Column
from refinery.loader.format.written import BESIDE, PROVENANCE, STATED, WITH_TEXT, files_fault
from refinery.transforms.core.document import Document
from refinery.transforms.core.params import Params
from refinery.transforms.core.prepared import HeldFiles
from refinery.transforms.core.rejects import RejectParams

P = TypeVar("P", bound=Params)

NO_CATEGORIES = ("source", "length")  # statistics.json has these without a note
# What a stage takes care of, for the cards of a corpus; the rest of the stages is about quality and copies.
CONCERNS: Mapping[str, str] = {
    "rights": "licences, and reservations of rights (opt-outs)",
    "credentials": "keys, tokens and passwords",
    "personal-data": "personal data",
    "harmful": "toxic, adult and otherwise unwanted content",
    "benchmarks": "items of benchmarks (contamination)",
}
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a stage drops a document. name: kebab-case and stable, since manifests carry it.

    meaning: a sentence's worth, for the pages. advice: what to do when it takes too much. source: the paper or table
    that the rule follows.
    """

    name: str
    meaning: str
    advice: str = "nothing"
    source: str = ""

    def __post_init__(self) -> None:
        if not KEBAB.fullmatch(self.name):
            raise ValueError(f"reason: {self.name!r} given, kebab-case is allowed")


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that a stage notes in a document's `meta`, under a name that no input may use.

    type: str, float or int. column: whether it is a column of the provenance files (else it is part of their JSON
    column `meta`); null there where the stage did not run, for text "". carried: whether the documents/ of an earlier
    run may bring it along, since it was recorded before they were written. category: of text, whether it is one of few
    words, by which statistics.json counts documents; of numbers it has the distribution. given: whether sources may
    have it as a field of their records, which the stage brings into its own form. counts: of what was found: a
    document without it has 0 where the stage ran, in rules and columns.
    """

    name: str
    type: type
    meaning: str
    column: bool = False
    carried: bool = False
    category: bool = False
    given: bool = False
    counts: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"note: {self.name!r} given, a lower-case name is allowed")
        if self.type not in (str, float, int):
            raise ValueError(f"note {self.name}: type {self.type!r} given, str, float or int is allowed")
        if self.category and (self.type is not str or self.name in NO_CATEGORIES):
            raise ValueError(
                f"note {self.name}: category given, of texts other than {' and '.join(NO_CATEGORIES)} only"
            )


def no_files(params: Any) -> tuple[str, ...]:
    """For stages that read no file."""
    return ()


def nothing_withheld(params: Any) -> frozenset[str]:
    """For stages that drop documents and not their copies."""
    return frozenset()


def no_notes(params: Any) -> tuple[Note, ...]:
    """For stages that note the same whatever their parameters."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Stage(Generic[P]):
    """A step of the funnel, declared. Frozen; compared by identity of its parts.

    name: in the funnel, in kebab-case. version: raised whenever the same parameters give other output for any text;
    part of the fingerprint. summary: one sentence. params: its parameter class. judge: the pure function, called as
    judge(document, params=…) -> Document | Drop, or judge(document, resource, params=…) with what `prepare(params)`
    builds once per process (a model, a compiled list); with `splits` it returns an iterable of documents, or Drop.
    Either may come in an `Answer` (answers.py), with names that are counted in the funnel and listed, and with a number
    that is counted in the funnel as a distribution.
    A stage without judge is a composite that phases know how to place.

    check: called with the parameters before a run; raises ValueError or OSError "field: …" (default: `prepare`, since
    what loads is right). files: paths whose content decides the result, from the parameters. libraries: distributions
    whose version decides the result. schemes: names of kernel schemes that decide it.
    section: key in the recipe (default: the name with underscores). uses: further sections that decide its result.
    complete: called with the parameters and the sections of `uses` by name; returns the parameters with what other
    sections say filled in, so a recipe says it once.
    bind: called with the parameters and the notes of all stages of the recipe; returns the parameters with what it
    needs of these. Raises ValueError "field: …", as the recipe is read.
    notes: what it notes whatever its parameters; asked_notes: what they ask for beside that, such as a score for each
    of a list of classifiers.
    excerpts: whether rejects/ may quote what it drops; off where it drops texts for what nobody should read.
    withholds: the reasons, from the parameters, for which copies of what it drops are dropped in phase 2, whatever is
    said of them; of a stage of phase 1 that drops documents.
    concerns: names of `CONCERNS` that it takes care of, by which cards say what was done.
    optional: whether a recipe may switch it off. on: whether it is on when a recipe says nothing. shared: whether the
    recipes of all lanes have its section, which is off where a lane lacks the stage; for sections that every recipe
    had before lanes could differ in them, so old recipes and fingerprints stay what they are. output: type of what
    it emits; coder: the module that registers that type's coder with Beam, imported where a graph is built.
    """

    name: str
    version: int
    summary: str
    params: type[P] | None = None
    judge: Callable[..., Any] | None = None
    prepare: Callable[[P], Any] | None = None
    check: Callable[[P], object] | None = None
    files: Callable[[P], Iterable[str]] = no_files
    libraries: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    asked_notes: Callable[[P], Iterable[Note]] = no_notes
    reasons: tuple[Reason, ...] = ()
    section: str = ""
    uses: tuple[str, ...] = ()
    complete: Callable[[P, Mapping[str, Any]], P] | None = None
    bind: Callable[[P, Iterable[Note]], P] | None = None
    optional: bool = True
    on: bool = True
    shared: bool = False
    splits: bool = False
    excerpts: bool = True
    withholds: Callable[[P], frozenset[str]] = nothing_withheld
    concerns: tuple[str, ...] = ()
    output: type = Document
    coder: str = ""
    hint: str = ""  # behind a "cannot be read": which command makes the file
    module: str = field(default="", compare=False)  # "module:NAME" of a user's own

    by_place: ClassVar[bool] = False  # whether it cuts at places of the text that phase 2 saw, before that changes

    def __post_init__(self) -> None:
        if not KEBAB.fullmatch(self.name):
            raise ValueError(f"stage: name {self.name!r} given, kebab-case is allowed")
        if self.version < 1:
            raise ValueError(f"stage {self.name}: version {self.version} given, 1 or more is allowed")
        for what in ("libraries", "schemes", "notes", "reasons", "uses", "concerns"):
            if not isinstance(getattr(self, what), tuple):
                given = type(getattr(self, what)).__name__
                raise ValueError(f"stage {self.name}: {what} of type {given} given, a tuple is allowed")
        if self.params is not None and not (isinstance(self.params, type) and issubclass(self.params, Params)):
            raise ValueError(f"stage {self.name}: params {self.params!r} given, a subclass of Params is needed")
        if unknown := sorted(set(self.concerns) - set(CONCERNS)):
            raise ValueError(
                f"stage {self.name}: concern {unknown[0]!r} given, some of {', '.join(CONCERNS)} is allowed"
            )
        names = [reason.name for reason in self.reasons]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"stage {self.name}: reason {twice[0]!r} given twice")
        if self.judge is not None and self.params is None:
            raise ValueError(f"stage {self.name}: a judge without params given, a subclass of Params is needed")

    @property
    def key(self) -> str:
        """Its section of the recipe; "" for none."""
        return self.section or (self.name.replace("-", "_") if self.params else "")

    @property
    def sections(self) -> tuple[str, ...]:
        """All sections of the recipe that decide its result."""
        return tuple(name for name in (self.key, *self.uses) if name)

    def held_files(self, params: P, digests: Mapping[str, str]) -> HeldFiles:
        """Its files with their sha256, as far as `digests` has them."""
        return tuple((path, digests[path]) for path in self.files(params) if path in digests)

    def __call__(
        self,
        params: P | None = None,
        rejects: RejectParams | None = None,
        digests: Mapping[str, str] | None = None,
        recorder: Any = None,
    ) -> Any:
        """The PTransform, a `PerDocument`: documents in, documents out; what it drops is counted and sampled by
        `rejects`. digests: path -> sha256 of files; workers hold those of the stage to them (prepared.py). recorder: as
        of `PerDocument`."""
        if self.judge is None or self.params is None:
            raise TypeError(f"stage {self.name} is a composite; it cannot be applied by itself")
        from refinery.transforms.core.per_document import PerDocument  # what only looks at declarations needs no Beam

        if self.coder:
            import_module(self.coder)
        chosen = self.params() if params is None else params
        judge = partial(self.judge, params=chosen)
        prepare = partial(self.prepare, chosen) if self.prepare else None
        known = frozenset(reason.name for reason in self.reasons)
        return PerDocument(
            self.name,
            judge,
            prepare,
            rejects or RejectParams(),
            self.output,
            splits=self.splits,
            reasons=known,
            excerpts=self.excerpts,
            files=self.held_files(chosen, digests or {}),
            recorder=recorder,
            own=self.module,
            withholds=self.withholds(chosen),
        )


@dataclass(frozen=True, kw_only=True)
class Sink:
    """What ends a phase: it writes what the stages kept. Declared for the fingerprint, since it decides bytes too.

    name, version, libraries, schemes: as of a stage. uses: sections of the recipe that decide what it writes.
    """

    name: str
    version: int
    summary: str
    uses: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()


def no_fields() -> Iterator[str]:
    """For documents whose sources keep no fields."""
    return repeat("")


@dataclass(frozen=True)
class ShardContent:
    """What a writer is given of a shard. rows, contents: functions that return an iterator over its documents in the
    order of the shard, called as often as needed. They give the rows of their provenance, and the text of each in
    UTF-8, or its tokens as bytes of `dtype`, "uint16" or "int32". columns: those of the provenance that stages fill.
    kept: its columns for fields of records; fields: as `contents`, gives all fields that each document's source keeps,
    a JSON object or ""."""

    rows: Callable[[], Iterator[dict[str, Any]]]
    contents: Callable[[], Iterator[bytes]]
    dtype: str = ""
    columns: Sequence[Column] = ()
    kept: Sequence[KeptColumn] = ()
    fields: Callable[[], Iterator[str]] = no_fields


@dataclass(frozen=True, kw_only=True)
class Writer(Sink):
    """The end of a lane: what its last stage emits in, the files of shards out. Shuffle, order, provenance, checksums
    and publishing are the same for all.

    name: of lower-case letters, digits and hyphens; manifest.json has it. files: of each shard, kind -> ending of its
    name; the first kind holds the documents. Beside them every shard has its provenance, whose row i describes
    document i; or the only file is `provenance` itself, with the texts as its column `text`.
    write: called as write(paths, shard) with a new local path for each kind and a ShardContent. The same documents give
    the same bytes: no time, no user, no order of its own. Memory: not the whole shard.
    read: called as read(files) with an open binary file for each kind; yields what `contents` gave of each document, in
    order. It shares nothing with `write`, since `refinery verify` compares one with the other; what it raises is a
    failure of that shard.
    counts_tokens: whether the lane's last stage encodes, and documents are counted in tokens, too: shards, provenance
    and totals have their numbers. Else the corpus is one of texts.
    state: of a writer of tokens, called as state(tokenizer, path) with a TokenizerInfo and the published file; gives
    the fields of manifest.json that describe them. A writer of texts states its `files` there.
    """

    uses: tuple[str, ...] = ("name", "shards", "columns")
    files: Mapping[str, str] = field(hash=False)
    write: Callable[[Mapping[str, Path], ShardContent], None]
    read: Callable[[Mapping[str, BinaryIO]], Iterable[bytes]]
    counts_tokens: bool = False
    state: Callable[[Any, str], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", self.name):
            raise ValueError(
                f"writer: name {self.name!r:.80} given, lower-case letters, digits and hyphens are allowed"
            )
        if not isinstance(self.version, int) or self.version < 1:
            raise ValueError(f"writer {self.name}: version {self.version!r} given, 1 or more is allowed")
        if not isinstance(self.files, Mapping):
            raise ValueError(f"writer {self.name}: files {self.files!r:.80} given, kind -> ending is allowed")
        if wrong := "" if self.counts_tokens or self.name == BESIDE else files_fault(tuple(self.files.items())):
            raise ValueError(f"writer {self.name}: files: {wrong}")
        for what in ("write", "read"):
            if not callable(getattr(self, what)):
                raise ValueError(f"writer {self.name}: {what} {getattr(self, what)!r:.80} given, a function is needed")
        if self.counts_tokens != (self.state is not None):
            raise ValueError(f"writer {self.name}: one of counts_tokens and state given, both or none are needed")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The files of a shard, in the order of listings."""
        return tuple(kind for kind, _ in self.endings)

    @property
    def endings(self) -> tuple[tuple[str, str], ...]:
        """Their endings by kind, in that order."""
        own = tuple(self.files.items())
        return own if self.has_text_column else (*own, PROVENANCE)

    @property
    def has_text_column(self) -> bool:
        """Whether it writes the provenance itself, with the texts as a column."""
        return WITH_TEXT[0] in self.files

    def stated(self, tokenizer: Any = None, path: str = "") -> Mapping[str, Any]:
        """The fields of manifest.json that describe its files. tokenizer, path: of a writer of tokens."""
        if self.state is not None:
            return self.state(tokenizer, path)
        return {STATED: [{"kind": kind, "ending": ending} for kind, ending in self.files.items()]}
