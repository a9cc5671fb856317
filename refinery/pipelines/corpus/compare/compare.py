"""`refinery compare`: all that tells two corpora apart, as data. text.py and page.py show it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from refinery.loader.storage.full_disk import scratch_folder
from refinery.pipelines.corpus.compare.distributions import (
    Columns,
    Distribution,
    column_distributions,
    published_distributions,
    read_both,
    scored_distributions,
)
from refinery.pipelines.corpus.compare.funnels import ReasonRow, StageRow, reason_rows, stage_rows
from refinery.pipelines.corpus.compare.joining.documents import Shared, document_rows, places_of
from refinery.pipelines.corpus.compare.joining.fates import REPLAYED, Fate, Kind
from refinery.pipelines.corpus.compare.joining.join import Join
from refinery.pipelines.corpus.compare.joining.listing import DocumentFile, Entry, list_samples
from refinery.pipelines.corpus.compare.joining.names import Names
from refinery.pipelines.corpus.compare.joining.overlap import CHANGED, CUT, MOVED, ONLY, SAME, Count, Group, Overlap
from refinery.pipelines.corpus.compare.joining.partitions import I64, Rows
from refinery.pipelines.corpus.compare.joining.side import Side, moved_inputs, open_side
from refinery.pipelines.corpus.compare.replays import Replays, replays
from refinery.pipelines.corpus.compare.settings import (
    Difference,
    InputFiles,
    input_files,
    same_tokenizer,
    setting_differences,
)
from refinery.pipelines.corpus.compare.versions import Relation, relation

SHOWN = 5  # documents that a listing shows


@dataclass(frozen=True)
class FateCount:
    """Documents that one side alone has, by what became of them on the other. entries: a sample of them. replays: where
    no file names the rule, what a sample of them says."""

    fate: Fate
    count: Count
    entries: tuple[Entry, ...] = ()
    replays: Replays | None = None


@dataclass(frozen=True)
class Documents:
    """How the documents of A and B compare. Pairs have the counts of both sides: (A, B).

    has_tokens: whether both count tokens. same: one id, one size, and with one tokenizer as many tokens. cut: one id,
    another final text. changed: one record, two ids. only: by side, and in it by fate, the largest first. moves: (what,
    before, after) -> documents of `same` and `cut`. other_record: of these, how many come from another record now.
    by_source: (what, side, source) -> count.
    """

    same: tuple[Count, Count]
    cut: tuple[Count, Count]
    changed: tuple[Count, Count]
    only: Mapping[str, tuple[FateCount, ...]]
    moves: Sequence[tuple[str, str, str, int]]
    other_record: int
    moved_inputs: int
    by_source: Mapping[tuple[str, str, str], Count]
    entries: Mapping[str, tuple[Entry, ...]]
    has_tokens: bool = True

    def lost(self, label: str) -> Count:
        """All documents that this side alone has."""
        total = Count()
        for each in self.only[label]:
            total += each.count
        return total

    @property
    def differ(self) -> bool:
        """Whether any document is not the same, in the same place."""
        pairs = self.cut[0].documents + self.changed[0].documents + len(self.moves)
        return bool(pairs or self.lost("A").documents or self.lost("B").documents)


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. relation: where both are versions of one corpus. documents: None where a side has no
    provenance. tokens_differ: names of shards that both have with the same documents, sizes and counts but other
    tokens."""

    a: Side
    b: Side
    relation: Relation | None
    settings: tuple[Difference, ...]
    inputs: tuple[InputFiles, ...]
    stages: tuple[StageRow, ...]
    stages_by_source: tuple[StageRow, ...]
    reasons: tuple[ReasonRow, ...]
    reasons_by_source: tuple[ReasonRow, ...]
    distributions: tuple[Distribution, ...]
    documents: Documents | None
    tokens_differ: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def identical(self) -> bool:
        """Whether every file of tokens, or of texts, has the same name and bytes."""
        return sorted(self.a.checksums()) == sorted(self.b.checksums())

    @property
    def differ(self) -> bool:
        """Whether documents, tokens or funnel differ; settings alone do not count."""
        if self.documents is None:
            return not self.identical
        here, there = (side.manifest.totals for side in (self.a, self.b))
        totals = any(here[unit] != there[unit] for unit in {*here} & {*there})  # tokens, where both count them
        counts = any(row.a != row.b for row in self.reasons)
        return self.documents.differ or totals or counts or bool(self.tokens_differ)


def compare(
    prefixes: tuple[str, str],
    works: tuple[str, str] = ("", ""),
    shown: int = SHOWN,
    replayed: int = 0,
    recipes: tuple[str, str] = ("", ""),
    write_documents: Callable[[Path], None] | None = None,
) -> Comparison:
    """Compare the corpora at two prefixes (local folders or gs://bucket/prefix).

    works: their work locations where these are not PREFIX/work. shown: documents listed per group. replayed: records
    per group, at most, that are read again where no file names the rule; recipes: files of the recipes, which that
    needs for runs with stages of their own. write_documents: is given a local Parquet file of all documents that they
    do not share. Raises FormatError where there is no complete corpus, OSError for what cannot be read. Cost, memory
    and disk: docs/compare.md.
    """
    a, b = (open_side(label, prefix, work) for label, prefix, work in zip("AB", prefixes, works, strict=True))
    statistics = None if a.adopted or b.adopted else read_both(a, b)
    columns = {"A": Columns(), "B": Columns()}
    documents = None
    if not (a.adopted or b.adopted):
        names = [] if statistics else _common_columns(a, b)
        documents = _compare_documents((a, b), max(shown, replayed), columns, names, write_documents)
        documents = _explained(documents, (a, b), shown, replayed, recipes)
    measured = [
        *column_distributions(columns["A"], columns["B"]),
        *(published_distributions(statistics) if statistics else ()),
        *scored_distributions(a, b),
    ]
    distributions = {(each.where, each.name): each for each in reversed(measured)}  # one of each: the first, finest
    agree = documents is not None and not documents.differ
    return Comparison(
        a=a,
        b=b,
        relation=relation(a, b),
        settings=tuple(setting_differences(a, b)),
        inputs=tuple(input_files(a, b, moved_inputs(a, b))),
        stages=tuple(stage_rows(a, b)),
        stages_by_source=tuple(stage_rows(a, b, by_source=True)),
        reasons=tuple(reason_rows(a, b)),
        reasons_by_source=tuple(reason_rows(a, b, by_source=True)),
        distributions=tuple(reversed(distributions.values())),
        documents=documents,
        tokens_differ=_other_tokens(a, b) if agree and same_tokenizer(a, b) else (),
        notes=(*_lanes(a, b), *a.notes, *b.notes),
    )


def _lanes(a: Side, b: Side) -> Iterator[str]:
    if a.manifest.lane != b.manifest.lane:
        yield (
            f"A is of the lane {a.manifest.lane}, B of {b.manifest.lane}: a stage that one of them lacks has no counts "
            "on that side, and texts that were cleaned in different ways seldom have the same id"
        )


def _common_columns(a: Side, b: Side) -> list[str]:
    theirs = set(b.manifest.columns)
    return [column.name for column in a.manifest.columns if column in theirs]


def _other_tokens(a: Side, b: Side) -> tuple[str, ...]:
    """Shards of one name and number of documents whose tokens are not the same bytes."""
    theirs = {shard.bin.path: shard for shard in b.manifest.shards}
    return tuple(
        shard.bin.path
        for shard in a.manifest.shards
        if (other := theirs.get(shard.bin.path))
        and (shard.documents, shard.tokens) == (other.documents, other.tokens)
        and shard.bin.sha256 != other.bin.sha256
    )


def _compare_documents(
    both: tuple[Side, Side],
    shown: int,
    columns: Mapping[str, Columns],
    names: Sequence[str],
    write_documents: Callable[[Path], None] | None,
) -> Documents:
    a, b = both
    sides = {"A": a, "B": b}
    shared = Shared(moved=moved_inputs(a, b))
    places = {label: places_of(side, shared) for label, side in sides.items()}
    overlap = Overlap(shared, places, same_tokenizer(a, b), shown)
    with scratch_folder("the rows of both corpora") as scratch:
        file = DocumentFile(scratch / "documents", sides) if write_documents else None
        fates: Names[Fate] = Names()
        changed_fate = fates.number(Fate(Kind.CHANGED))

        def changed(one: Rows, other: Rows) -> None:
            overlap.add_changed(one, other)
            if file:
                file.add("A", one, changed_fate, other["id"])
                file.add("B", other, changed_fate, one["id"])

        def lost(side: Side, rows: Rows, numbers: I64, other: Rows) -> None:
            overlap.add_lost(side, rows, numbers, other)
            if file:
                file.add(side.label, rows, numbers, other)

        join = Join(a, b, shared, scratch, overlap.add_pairs, changed, lost, fates)
        for side in sides.values():
            for rows, table in document_rows(side, shared, tuple(names)):
                columns[side.label].add_numbers("text-bytes", rows["text_bytes"])
                if side.manifest.has_tokens:
                    columns[side.label].add_numbers("token-count", rows["tokens"])
                columns[side.label].add(table, names)
                join.add(side, rows)
        join.run()
        if file and write_documents:
            file.write(scratch / "documents.parquet", fates)
            write_documents(scratch / "documents.parquet")
    return _documents(overlap, fates, sides)


def _explained(
    found: Documents, sides: tuple[Side, Side], shown: int, replayed: int, recipes: tuple[str, str]
) -> Documents:
    """With a replay of those whose rule is not recorded, and listings of the length that is wanted."""
    to_a = moved_inputs(*sides)
    to_b = {here: there for there, here in to_a.items()}
    only = {}
    for label, other, moved, recipe in (("A", sides[1], to_b, recipes[1]), ("B", sides[0], to_a, recipes[0])):
        only[label] = tuple(
            replace(
                each,
                entries=each.entries[:shown],
                replays=replays(other, each.fate.kind, each.entries[:replayed], each.count.documents, moved, recipe)
                if replayed and each.fate.kind in REPLAYED
                else None,
            )
            for each in found.only[label]
        )
    return replace(found, only=only, entries={name: listed[:shown] for name, listed in found.entries.items()})


def _documents(overlap: Overlap, fates: Names[Fate], sides: Mapping[str, Side]) -> Documents:
    entries = list_samples(overlap.samples, sides)
    groups = overlap.groups()
    only = {}
    for label in sides:
        found = [
            FateCount(fates[group.fate], count, entries.get(group, ()))
            for (group, side), count in groups.items()
            if group.what == ONLY and side == label
        ]
        only[label] = tuple(sorted(found, key=lambda each: (-each.count.documents, _fate_order(each.fate))))
    shared = overlap.shared
    moves = [
        (which, _place(shared, which, before), _place(shared, which, after), count)
        for (which, before, after), count in overlap.moves.items()
    ]
    by_source: dict[tuple[str, str, str], Count] = {}
    for (group, label, source), count in overlap.counts.items():
        total = by_source.setdefault((group.what, label, shared.sources[source]), Count())
        total += count

    def both(what: str) -> tuple[Count, Count]:
        return groups.get((Group(what), "A"), Count()), groups.get((Group(what), "B"), Count())

    return Documents(
        same=both(SAME),
        cut=both(CUT),
        changed=both(CHANGED),
        only=only,
        moves=sorted(moves, key=lambda move: (-move[-1], move)),
        other_record=overlap.other_record,
        moved_inputs=len(shared.moved),
        by_source=dict(sorted(by_source.items())),
        entries={what: entries.get(Group(what), ()) for what in (CHANGED, CUT, MOVED)},
        has_tokens=all(side.manifest.has_tokens for side in sides.values()),
    )


def _fate_order(fate: Fate) -> tuple[int, str, str, str]:
    return fate.kind, fate.stage, fate.reason, fate.scope


def _place(shared: Shared, which: str, number: int) -> str:
    return "/".join(shared.places[number]) if which == "place" else shared.sources[number]
