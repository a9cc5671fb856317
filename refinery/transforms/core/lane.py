"""A lane as data: the ordered stages of its three phases, the formats it reads, the writer that ends it.

Everything that has to know the stages derives it from here: the recipe's class, fingerprints, the funnel's order,
checks before a run, provenance columns, pages, the JSON schema.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from refinery.transforms.core.document import Document
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Sink, Stage, Writer
from refinery.transforms.core.wording import meant

AnyStage = Stage[Any]


@dataclass(frozen=True, kw_only=True)
class Lane:
    """name: what a recipe calls it. readers: formats of sources, names of transforms.read.registry.readers(). source:
    the parameter class of its sources where the defaults of their fields differ from those of `SourceParams`, a
    subclass of it. fields: texts that its sources keep of their records, and that are columns of the provenance
    files, too. defaults: sections of the recipe whose defaults differ from those of their parameter class.

    clean: phase 1 from the reader on; `parts` ends it. dedup: phase 2, which never touches text. shards: phase 3 up to
    the encoder (and, where sources have targets, TARGET behind it), or up to TEXT where the writer writes texts;
    `writer` ends it.
    """

    name: str
    summary: str
    readers: tuple[str, ...]
    clean: tuple[AnyStage, ...]
    parts: Sink
    dedup: tuple[AnyStage, ...]
    shards: tuple[AnyStage, ...]
    writer: Writer
    source: type[Params] | None = None
    fields: tuple[Note, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict, hash=False)
    module: str = field(default="", compare=False)  # "module:NAME" of a user's own

    def __post_init__(self) -> None:
        if wrong := [stage.name for stage in (*self.clean, *self.dedup) if stage.by_place]:
            raise ValueError(f"lane {self.name}: stage {wrong[0]!r} before phase 3 given, it cuts what phase 2 finds")
        last = next((stage for stage in reversed(self.shards) if stage.judge is not None), None)
        if last is None or last.output is Document:
            raise ValueError(f"lane {self.name}: it ends with documents, `encode` or `text` as last stage is needed")
        if self.writer.counts_tokens != ("tokenizer" in last.sections):
            given, needed = ("tokens", "encode") if self.writer.counts_tokens else ("texts", "text")
            raise ValueError(
                f"lane {self.name}: the writer {self.writer.name} writes {given}, `{needed}` as last stage is needed"
            )
        for what, names in (
            ("stage", [stage.name for stage in self.stages]),
            ("section", [stage.key for stage in self.stages if stage.key]),
            ("note", [note.name for note in (*self.fields, *self.notes)]),
        ):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"lane {self.name}: {what} {twice[0]!r} declared twice")

    @property
    def encodes(self) -> bool:
        """Whether it needs a tokenizer: a stage of it does."""
        return any("tokenizer" in stage.sections for stage in self.stages)

    @property
    def encoding(self) -> tuple[AnyStage, ...]:
        """The stages that turn texts into tokens: from the first one that needs a tokenizer on."""
        first = next((n for n, stage in enumerate(self.shards) if "tokenizer" in stage.sections), len(self.shards))
        return self.shards[first:]

    @property
    def stages(self) -> tuple[AnyStage, ...]:
        """All stages, in the order of the funnel."""
        return (*self.clean, *self.dedup, *self.shards)

    @property
    def funnel(self) -> tuple[str, ...]:
        """Names of the stages, in order."""
        return tuple(stage.name for stage in self.stages)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the stages note in meta, in their order."""
        return tuple(chain.from_iterable(stage.notes for stage in self.stages))

    def phase(self, name: str) -> tuple[AnyStage, ...]:
        """The stages of "clean", "dedup" or "shards"."""
        return {"clean": self.clean, "dedup": self.dedup, "shards": self.shards}[name]

    def phase_of(self, stage: AnyStage) -> str:
        """The phase that a stage belongs to."""
        return next(name for name in PHASES if stage in self.phase(name))

    def sink(self, phase: str) -> Sink | None:
        """What ends a phase; None for dedup, whose verdicts belong to its stages."""
        return {"clean": self.parts, "shards": self.writer}.get(phase)

    def sections(self, phase: str) -> tuple[str, ...]:
        """Sections of a recipe that decide a phase, each in the first phase that uses it."""
        found: list[str] = []
        for name in PHASES[: PHASES.index(phase) + 1]:
            before = tuple(found)
            sink = self.sink(name)
            used = [key for stage in self.phase(name) for key in stage.sections]
            if name == "dedup":  # what the first cuts cut is decided there; of others fingerprint.py says it
                used += [stage.key for stage in self.shards if stage.by_place and stage.shared]
            found += [key for key in dict.fromkeys((*used, *(sink.uses if sink else ()))) if key not in before]
        return tuple(key for key in found if phase == PHASES[0] or key not in before)

    def places(self, stage: AnyStage | None = None) -> Iterator[str]:
        """Names of the stages behind which another one, or this one, may be placed: those that emit documents. One that
        cuts by place is in phase 3, not behind what the lane has behind its own cuts: that may change the text."""
        emitting = [known for known in self.shards if known.judge is not None][:-1]  # the last one encodes
        if stage is None or not stage.by_place:
            yield from (known.name for known in self.clean[1:])
        elif cuts := [place for place, known in enumerate(emitting, 1) if known.by_place]:
            emitting = emitting[: cuts[-1]]
        yield from (known.name for known in emitting)

    def insert(self, stage: AnyStage, after: str) -> "Lane":
        """This lane with another stage behind the one named.

        Raises ValueError for a place that has no documents to judge, and for a name that is taken.
        """
        if after not in self.places(stage):
            raise ValueError(
                f"after: {after!r} given, {', '.join(self.places(stage))} is allowed{meant(after, self.places(stage))}"
            )
        phase = "clean" if after in {known.name for known in self.clean} else "shards"
        known = self.phase(phase)
        place = [known.name for known in self.phase(phase)].index(after) + 1
        longer = (*known[:place], stage, *known[place:])
        return replace(self, clean=longer) if phase == "clean" else replace(self, shards=longer)
