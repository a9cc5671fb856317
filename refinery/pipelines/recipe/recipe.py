"""The recipe: everything that decides what comes out of a run, as one tree of frozen parameter classes.

`Recipe` holds what every lane has; a lane's own class adds a section for each of its stages (`recipe_class`).
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field, create_model, model_validator

import refinery.pipelines.lanes as lanes
from refinery.loader.format.manifest import MANIFEST
from refinery.loader.format.provenance import provenance_schema
from refinery.pipelines.recipe.user_stages import NO_CODE, UserCode
from refinery.transforms.core.document import FIELDS
from refinery.transforms.core.lane import AnyStage, Lane
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.params import Count, Params, Positive, Share, below
from refinery.transforms.core.rejects import RejectParams
from refinery.transforms.core.stage import Note, P, Stage
from refinery.transforms.core.wording import meant, nearest
from refinery.transforms.dedup.cutting_pass import ComparingStage, Cuts, CuttingPass, check_together
from refinery.transforms.dedup.near_duplicates import ANY_SOURCE, NearParams
from refinery.transforms.dedup.records.rank import RankParams
from refinery.transforms.dedup.reference_corpora import MAX_CORPORA, ReferenceCorpusParams
from refinery.transforms.dedup.signatures import SignatureParams
from refinery.transforms.dedup.stages import EXACT_DUPLICATES, NEAR_DUPLICATES, NEAR_DUPLICATES_IN_SOURCE
from refinery.transforms.read.kept_fields import KEPT
from refinery.transforms.read.plan import LimitParams, SourceParams
from refinery.transforms.read.reader import Reader
from refinery.transforms.read.registry import find_reader, is_own
from refinery.transforms.tokenize.encode import TokenizerParams
from refinery.transforms.write.documents import SourceFacts
from refinery.transforms.write.packing.write_packed import PackedParams
from refinery.transforms.write.rows.layout import check_layout
from refinery.transforms.write.shuffle import ShardParams
from refinery.transforms.write.targets import TARGET
from refinery.transforms.write.text_writers import check_writer

DEFAULT_LANE = "web"

# Fields of `Recipe` for stages that not every lane has and that declare no parameters: the field, and what switches
# the stage off.
SWITCHES: Mapping[AnyStage, tuple[str, Any]] = {
    EXACT_DUPLICATES: ("exact_dup", False),
    NEAR_DUPLICATES_IN_SOURCE: ("near_dup_in_source", {}),
    NEAR_DUPLICATES: ("near_dup", None),
}

# A name that a column of the provenance files may have (loader/format/manifest.py).
COLUMN = re.compile(r"[a-z][a-z0-9_]{0,63}")

# Sections that decide nothing: they may change between two commands of one run.
UNDECIDING = ("failures", "run")
# Keys of a source that decide nothing either: who pays may change, too, and is nobody else's business.
UNDECIDING_OF_SOURCES = ("requester_pays",)


class FailureParams(Params):
    """How many dead letters a run tolerates before it fails, and which sources may end up empty. Not part of the
    fingerprint: raise it, and the same command goes on."""

    max_ratio: Share = 0.01
    """dead letters / documents that a stage may reach before the run fails"""
    grace: Count = 10
    """dead letters of a stage that are always tolerated: one damaged record does not fail a small run"""
    poison_files: Count = 0
    """records that may be left out because worker processes died twice on them, each as one dead letter `PoisonRecord`;
    a file on which they died before any record counts as one, too (`PoisonFile`). 0: the run ends and names the file;
    with the local runner only"""
    allow_empty: bool | tuple[str, ...] = False
    """whether the run may go on when nothing of a source is kept: on, or the names of such sources"""


class RunParams(Params):
    """How the work is cut; never what comes out, so not part of the fingerprint."""

    wave_bytes: Positive = 8 << 30
    """input bytes (as stored) of one wave of phase 1: a failure costs a wave; on other machines, where both limits of a
    wave have their defaults, two hours of work for the vCPUs asked for"""
    wave_files: Positive = 1024
    """input files of one wave of phase 1; on other machines likewise 100,000"""
    part_bytes: Positive = 256 << 20
    """text in one part of `documents/`"""
    components: Literal["auto", "forest", "contraction"] = "auto"
    """how links between near duplicates become components: in one worker's memory (`forest`), in rounds of shuffles
    (`contraction`), or whichever suits the number of documents (`auto`)"""
    spread_documents: Positive = 100_000_000
    """where slices of an array do the work: from how many documents on, as estimated from the bytes of the inputs,
    they share deduplication; fewer are faster in one task"""


class UsedStage(Params):
    """A stage from elsewhere, and its place."""

    use: Annotated[str, Field(min_length=1)]
    """`module:NAME` of a declaration, in a module beside the recipe or an installed package; or the name of an entry
    point in the group `refinery.stages`"""
    after: Annotated[str, Field(min_length=1)]
    """name of the stage that it follows"""


class Recipe(Params):
    """One corpus. An optional section set to null (or off) leaves its stage out."""

    LATER: ClassVar[tuple[str, ...]] = ("annotate", "columns", "layout", "writer")
    LANE: ClassVar[Lane]
    CODE: ClassVar[UserCode] = NO_CODE

    name: Annotated[str, Field(min_length=1)]
    """label of the corpus in its manifest"""
    lane: str = DEFAULT_LANE
    """which stages there are, and in which order: a lane's name, or `module:NAME` of one of your own"""
    sources: Annotated[tuple[SourceParams, ...], Field(min_length=1)]
    """what is read: at least one source, each with a name of its own"""
    writer: str = ""
    """what the shards hold: empty for the lane's own, which are tokens; `text` for texts as Parquet, `text-jsonl` and
    `text-jsonl-gzip` for texts as JSON Lines, compressed by Zstandard or gzip. Texts need no `tokenizer`"""
    layout: Literal["shards", "as-input"] = "shards"
    """`as-input` writes no shards: each file of the inputs becomes a file of the same name and form with the rows that
    stay, in their order; the accounts are in PREFIX`.refinery`"""
    annotate: tuple[str, ...] = ()
    """with `as-input`, drop nothing and label every row: names of the fields that rows get, which are `keep`, `reason`,
    `duplicate`, `duplicate_of`, `copies`, `cluster`, `cluster_size`, places in the text, such as `pii_spans`, and what
    stages note, such as `language`: [annotate.md](steps/annotate.md)"""
    stages: tuple[UsedStage, ...] = ()
    """stages of your own; further keys of an element are the parameters of its stage"""
    tokenizer: TokenizerParams
    """which tokenizer"""
    limits: LimitParams = LimitParams()
    """sizes above which a record is skipped"""
    rejects: RejectParams = RejectParams()
    """what is kept of dropped documents"""
    failures: FailureParams = FailureParams()
    """how many dead letters a run tolerates, and which sources may end up empty"""
    signature: SignatureParams = SignatureParams()
    """how documents are sketched"""
    rank: RankParams = RankParams()
    """which of several copies is kept"""
    exact_dup: bool = True
    """remove documents of equal text"""
    near_dup: NearParams | None = NearParams()
    """remove documents that nearly equal a kept one, whatever its source"""
    near_dup_in_source: Mapping[str, NearParams | None] = {}
    """before that, the same among the documents of one source: its name, or `*` for all others, to parameters"""
    reference_corpora: Annotated[tuple[ReferenceCorpusParams, ...], Field(max_length=MAX_CORPORA)] = ()
    """published corpora whose documents win, and are not written again"""
    columns: tuple[str, ...] = ()
    """notes of stages, and `meta_fields` of sources, that become columns of the provenance, beside those that always
    are: `perplexity`, `toxicity`, `pii`, `title` and others that are in its column `meta` otherwise:
    [labels.md](labels.md)"""
    shards: ShardParams = ShardParams()
    """how the corpus is cut and ordered"""
    packed: PackedParams | None = None
    """write the documents a second time, as packed rows"""
    run: RunParams = RunParams()
    """how the work is cut"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name.isprintable():
            raise ValueError(f"name: {self.name!r} given, printable characters are allowed")
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"sources: the name {twice[0]!r} given twice, every source needs its own name")
        layouts = {f"near_dup_in_source.{name}": params for name, params in self.near_dup_in_source.items()}
        for section, params in {**layouts, "near_dup": self.near_dup}.items():
            try:
                if params:
                    params.layout(params.compared(self.signature.permutations))
            except ValueError as error:
                raise ValueError(f"{section}.{error}") from error
        for name in self.near_dup_in_source:
            if name not in (*names, ANY_SOURCE):
                raise ValueError(
                    f"near_dup_in_source: {name!r} given, the name of a source or '*' is allowed{meant(name, names)}"
                )
        allowed = self.failures.allow_empty
        for name in () if isinstance(allowed, bool) else allowed:
            if name not in names:
                raise ValueError(
                    f"failures.allow_empty: {name!r} given, on or names of sources are allowed{meant(name, names)}"
                )
        if self.reference_corpora and not self.exact_dup:
            raise ValueError("reference_corpora: published corpora given with exact_dup off, they need it on")
        return self

    @model_validator(mode="after")
    def _check_lane(self) -> Self:
        lane = getattr(type(self), "LANE", None)
        if lane is None:
            return self
        for name, off in absent_sections(lane).items():
            if getattr(self, name) != off:
                raise ValueError(f"{name}: on given, the lane {lane.name} has no such stage, off is allowed")
        stages = [stage.name for stage in lane.stages]
        check_layout(lane.writer, self.layout, self.annotate, self.notes(), stages)
        check_writer(lane.writer, self.writer, self.shards)
        own = self._check_notes()
        compared = [stage for stage in lane.stages if isinstance(stage, ComparingStage)]
        check_together([stage for stage in compared if getattr(self, stage.key) is not None])
        for stage in lane.stages:
            params = getattr(self, stage.key) if stage.key else None
            if params is not None and stage.bind is not None:
                try:
                    stage.bind(params, self.notes())
                except ValueError as error:
                    raise ValueError(below(stage.key, str(error))) from None
        for index, source in enumerate(self.sources):
            if source.format not in ("auto", *lane.readers) and not is_own(source.format):
                raise ValueError(
                    f"sources[{index}].format: {source.format!r} given, one of {', '.join(lane.readers)} is allowed in "
                    f"the lane {lane.name}{meant(source.format, lane.readers)}"
                )
            if source.target is not None and not lane.writer.counts_tokens:
                raise ValueError(
                    f"sources[{index}].target: {source.target} given, the lane {lane.name} writes no tokens: "
                    "`max_files` or `sample` limit a source there"
                )
            if source.target is not None and TARGET not in lane.stages:
                raise ValueError(
                    f"sources[{index}].target: {source.target} given, recipes from data alone may have one"
                )
            if taken := sorted(own & set(source.meta_fields)):
                raise ValueError(
                    f"sources[{index}].meta_fields: {taken[0]!r} given, any but what stages note themselves is "
                    f"allowed: {', '.join(sorted(own))}"
                )
        return self

    def active(self, phase: str) -> Iterator[tuple[AnyStage, Any]]:
        """(stage, its parameters) of the stages of a phase that are on, in order; None for a stage without a
        section. Parameters are complete: with what other sections say."""
        for stage in self.LANE.phase(phase):
            params = getattr(self, stage.key) if stage.key else None
            if params is not None and stage.complete is not None:
                params = stage.complete(params, {name: getattr(self, name) for name in stage.uses})
            if params is not None and stage.bind is not None:
                params = stage.bind(params, self.notes())
            if params is not None or not stage.key:
                yield stage, params

    def params_of(self, stage: Stage[P]) -> P | None:
        """The parameters of a stage as the recipe gives them; None where it is off."""
        return cast("P | None", getattr(self, stage.key))

    def removes_copies(self) -> bool:
        """Whether phase 2 has anything to do."""
        return bool(self.exact_dup or self.near_dup or self.near_dup_in_source or self.comparing())

    def comparing(self) -> list[tuple[ComparingStage[Any], Any]]:
        """(stage, its parameters) of the stages that are on and that phase 2 decides by hashes of phase 1. The last
        one comes first: so signatures/ have always had their columns."""
        found = [each for phase in ("dedup", "shards") for each in self.active(phase)]
        return [(stage, params) for stage, params in reversed(found) if isinstance(stage, ComparingStage)]

    def cutting(self) -> tuple[tuple[CuttingPass[Any], Any], ...]:
        """Those of them that cut parts out of documents."""
        return tuple((stage, params) for stage, params in self.comparing() if isinstance(stage, CuttingPass))

    def cuts(self) -> tuple[Cuts, ...]:
        """What they cut."""
        return tuple(stage.cuts for stage, _ in self.cutting())

    def _check_notes(self) -> set[str]:
        """The names of all notes that sources may not give, once they are known to go together."""
        own = {note.name for note in self.LANE.notes}
        published = provenance_schema((), has_text=bool(self.writer)).names
        own |= {FIELDS} if self._keeps_fields() else set()
        taken = own | {*published, *(note.name for note in self.LANE.fields)}
        for stage, note in self._asked_notes():
            if note.name in taken:
                raise ValueError(f"{stage.key}: the name {note.name!r} given, which a column or another note has")
            taken.add(note.name)
            own.add(note.name)
        dedup = {note.name for stage in self.LANE.phase("dedup") for note in stage.notes}  # columns of other names
        noted = (*self.LANE.notes, *(note for _, note in self._asked_notes()))
        known = {note.name for note in noted if not note.column and note.name not in dedup}
        fields = {name for source in self.sources for name in source.meta_fields} - taken - own
        for name in self.columns:
            if name not in known | fields:
                raise ValueError(f"columns: {name[:60]!r} given, {nearest(name, sorted(known | fields))}")
            if name in fields and not COLUMN.fullmatch(name):
                raise ValueError(f"columns: {name[:60]!r} given, a name of a-z, 0-9 and _ is allowed for a column")
        if twice := sorted({name for name in self.columns if self.columns.count(name) > 1}):
            raise ValueError(f"columns: {twice[0]!r} given twice")
        return own - {note.name for note in self.LANE.notes if note.given}

    def _asked_notes(self) -> Iterator[tuple[AnyStage, Note]]:
        """What the parameters of stages that are on ask for."""
        for stage in self.LANE.stages:
            params = getattr(self, stage.key) if stage.key else None
            if params is not None:
                yield from ((stage, note) for note in stage.asked_notes(params))

    def notes(self) -> tuple[Note, ...]:
        """What the lane's stages note, whether they are on or not, then what parameters ask for. Those that the recipe
        wants as columns are columns; those of stages that are off count nothing."""
        off = {note for stage in self.LANE.stages if stage.key and not getattr(self, stage.key) for note in stage.notes}
        noted = (*self.LANE.notes, *(note for _, note in self._asked_notes()))
        return tuple(
            replace(note, column=note.column or note.name in self.columns, counts=note.counts and note not in off)
            for note in noted
        )

    def counted(self) -> frozenset[str]:
        """Names of the notes that are 0 where a document has none."""
        return frozenset(note.name for note in self.notes() if note.counts)

    def provenance(self) -> tuple[Note, ...]:
        """What are columns of the provenance files, in their order: fields of records, notes, and the fields of records
        that `columns` names."""
        noted = self.notes()
        names = {note.name for note in (*self.LANE.fields, *noted)}
        asked = (Note(name, str, "a field of records", column=True) for name in self.columns if name not in names)
        kept = (KEPT,) if self._keeps_fields() else ()
        return (*self.LANE.fields, *(note for note in noted if note.column), *asked, *kept)

    def _keeps_fields(self) -> bool:
        """Whether any source keeps the fields of its records."""
        return any(source.fields for source in self.sources)

    def readers(self) -> list[Reader]:
        """The readers of the formats that its sources name, and of all that its lane reads where one goes by endings,
        by name. Raises ValueError where one of the user's own is not there."""
        names = {source.format for source in self.sources}
        names = (names - {"auto"}) | set(self.LANE.readers) if "auto" in names else names
        return [find_reader(name) for name in sorted(names)]

    def source_facts(self) -> dict[str, SourceFacts]:
        """Source name -> its priority and domain."""
        return {s.name: SourceFacts(s.priority, s.domain or s.name) for s in self.sources}

    def targets(self) -> dict[str, int]:
        """Source name -> most tokens of it in the corpus, of the sources that have a target."""
        return {s.name: s.target for s in self.sources if s.target is not None and s.enabled}

    def files(self) -> Iterator[tuple[str, str]]:
        """(section, path) of every file that the recipe names beside the inputs: lists, models, the tokenizer."""
        for phase in PHASES:
            for stage, params in self.active(phase):
                yield from ((stage.key, path) for path in stage.files(params))
        for corpus in self.reference_corpora:
            yield "reference_corpora", f"{corpus.prefix.rstrip('/')}/{MANIFEST}"

    def deciding(self) -> dict[str, Any]:
        """What `_run.json` and the manifest hold of it: all sections that decide something, as plain data."""
        plain = {name: value for name, value in self.plain().items() if name not in UNDECIDING}
        kept = ({k: v for k, v in source.items() if k not in UNDECIDING_OF_SOURCES} for source in plain["sources"])
        return {**plain, "sources": list(kept)}


def absent_sections(lane: Lane) -> dict[str, Any]:
    """Keys of every recipe that ask for what this lane does not have -> what they must be in it."""
    absent = dict(switch for stage, switch in SWITCHES.items() if stage.name not in lane.funnel)
    absent |= dict.fromkeys(stage.key for stage in shared_stages() if stage.name not in lane.funnel)
    absent |= {} if "packed" in lane.writer.uses else {"packed": None}
    return absent if lane.encodes else {**absent, "tokenizer": None}


@cache
def recipe_class(lane: Lane) -> type[Recipe]:
    """The recipe of a lane: `Recipe`, a section for each stage that it does not have already, and those of the shared
    stages that the lane lacks. One class for each lane, so equal recipes compare equal."""
    fields: dict[str, Any] = {}
    if lane.source is not None:
        fields["sources"] = (GenericAlias(tuple, (lane.source, ...)), Recipe.model_fields["sources"])
    if not lane.encodes:
        fields["tokenizer"] = (TokenizerParams | None, None)
    for stage in lane.stages:
        if stage.key == "tokenizer" and stage.params is not TokenizerParams:  # of an encoder of its own
            fields["tokenizer"] = (stage.params, Recipe.model_fields["tokenizer"])
        if stage.params is None or stage.key in Recipe.model_fields:
            continue
        if not stage.optional:
            fields[stage.key] = (stage.params, stage.params())
        else:
            fields[stage.key] = (stage.params | None, stage.params() if stage.on else None)
    absent = absent_sections(lane)
    fields |= {stage.key: (cast(Any, stage.params) | None, None) for stage in shared_stages() if stage.key in absent}
    for name, default in {**lane.defaults, **absent}.items():
        fields[name] = (fields[name][0] if name in fields else Recipe.model_fields[name].annotation, default)
    made = create_model(f"{lane.name.capitalize()}Recipe", __base__=Recipe, __module__=__name__, **fields)
    made.LANE = lane
    return made


@cache
def lane_names() -> tuple[str, ...]:
    """Names of all lanes: the modules of pipelines/lanes/."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(lanes.__path__)))


def find_lane(name: str) -> Lane:
    """The project's lane of that name. Raises ValueError, naming all, if there is none."""
    if name not in lane_names():
        raise ValueError(
            f"lane: {name!r} given, {', '.join(lane_names())} or module:NAME is allowed{meant(name, lane_names())}"
        )
    found: Lane = importlib.import_module(f"{lanes.__name__}.{name}").LANE
    return found


@cache
def shared_stages() -> tuple[AnyStage, ...]:
    """The stages whose sections the recipes of all lanes have, in the order of the lanes that have them."""
    every = (stage for name in lane_names() for stage in find_lane(name).stages)
    return tuple(dict.fromkeys(stage for stage in every if stage.shared))
