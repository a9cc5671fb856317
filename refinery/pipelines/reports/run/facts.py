"""What a report is made of: a corpus' small files, and samples of its large ones. Bounded, whatever its size."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from refinery.loader.format.manifest import RUN, Manifest
from refinery.loader.storage.store import Store
from refinery.pipelines.published.damaged_files import DamagedFile, damaged_files
from refinery.pipelines.published.dropped import DroppedFile, read_dropped
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.statistics.published import Statistics
from refinery.pipelines.recipe.load_recipe import all_stages, with_target, with_writer
from refinery.pipelines.recipe.quantities.prices import PRICES
from refinery.pipelines.recipe.recipe import find_lane, lane_names
from refinery.pipelines.reports.run.dropped_documents import dropped_documents
from refinery.pipelines.reports.run.samples import KeptText, Rejects, kept_texts, read_dead_letters
from refinery.transforms.core.document import Document
from refinery.transforms.core.lane import AnyStage

PRICE = PRICES["core_hour_price"].dollars
# FormatError is a ValueError.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OSError)


@dataclass(frozen=True)
class StageCounts:
    """A stage, summed over sources. dropped, dead: reason -> (documents, bytes). found: group -> (items, documents).
    scored: series -> lower edge of a bin -> documents. seconds: of work, None where unknown."""

    name: str
    entered: int
    entered_bytes: int
    kept: int
    kept_bytes: int
    created: int
    dropped: Mapping[str, tuple[int, int]]
    dead: Mapping[str, tuple[int, int]]
    found: Mapping[str, tuple[int, int]]
    scored: Mapping[str, Mapping[float, int]]
    seconds: float | None

    @property
    def lost(self) -> int:
        """Documents that ended here."""
        return self.entered + self.created - self.kept


@dataclass(frozen=True)
class Facts:
    """A finished corpus. run: of _run.json. seconds: part of the work -> seconds of it; empty where work/ is gone.
    price: dollars for a core hour. declared: name of a stage -> its declaration, where that is known. missing: what
    could not be collected, and why, a sentence each. dropped: of dropped.json. times: when the run started and ended,
    seconds since 1970. quotes: whether dropped texts were read again for this page.
    damaged: input files that could not be read in whole.
    """

    where: str
    manifest: Manifest
    run: Mapping[str, Any]
    statistics: Statistics | None
    seconds: Mapping[str, float]
    price: float
    declared: Mapping[str, AnyStage]
    stages: Sequence[StageCounts]
    rejects: Rejects
    dead: Mapping[tuple[str, str], Sequence[str]]
    kept: Sequence[KeptText]
    missing: Sequence[str] = field(default_factory=tuple)
    dropped: DroppedFile | None = None
    times: tuple[float, float] | None = None
    quotes: bool = False
    damaged: Sequence[DamagedFile] = ()

    @property
    def of_texts(self) -> Sequence[StageCounts]:
        """The stages behind the one that makes texts of what was read: only of these are bytes those of texts."""
        for place, stage in enumerate(self.stages):
            declared = self.declared.get(stage.name)
            if declared and declared.judge is not None and declared.output is Document:
                return self.stages[place + 1 :]
        return self.stages


def read_facts(
    store: Store,
    seconds: Mapping[str, float] | None,
    price: float = PRICE,
    own: Iterable[AnyStage] = (),
    times: tuple[float, float] | None = None,
) -> Facts:
    """The facts about the corpus at `store`. seconds: of the phases' reports; None where work/ is gone. own: the
    stages of the run's lane, where the caller knows them. times: when the run started and ended.

    Raises FormatError where there is no finished corpus, or one whose listings or _run.json are damaged, ValueError for
    one that no run made. Whatever else cannot be read is missing from the report, which says so. Cost: reads of the
    listings, of the small files, of up to 20 files of rejects, and of the first documents of a shard per domain.
    """
    corpus = PublishedCorpus(store).load_with_run()
    manifest = corpus.manifest
    if corpus.is_adopted:
        raise ValueError(
            f"{store.root} was adopted from files of another tool: there was no run to report on "
            "(`refinery inspect` says what is there)"
        )
    missing: list[str] = []

    def attempt(what: str, read: Any, otherwise: Any) -> Any:
        try:
            return read()
        except UNREADABLE as error:
            missing.append(f"{what}: cannot be read ({type(error).__name__}: {error!s:.200}).")
            return otherwise

    run = attempt(RUN, lambda: corpus.run, {})
    statistics = attempt("Statistics", corpus.statistics, None)
    if statistics is None and not missing:
        missing.append(
            "Distributions, hosts, artefacts, clusters and the comparison of shards are missing, because the corpus is "
            "of an older version and has no statistics.json."
        )
    dropped = attempt("Dropped documents", lambda: read_dropped(corpus), None)
    declared = {stage.name: stage for stage in own or lane_stages(manifest.lane, manifest.written.writer)}
    if seconds is None:
        missing.append("Seconds, throughput and cost are not known: the work location is gone or was not given.")
    return Facts(
        where=store.root,
        manifest=manifest,
        run=run,
        statistics=statistics,
        seconds=dict(seconds or {}),
        price=price,
        declared=declared,
        stages=stage_counts(manifest.funnel, seconds or {}),
        rejects=attempt(
            "Samples of dropped documents",
            lambda: dropped_documents(corpus, dropped, declared),
            Rejects({}, {}, 0, 0),
        ),
        dropped=dropped,
        dead=attempt("Dead letters", lambda: read_dead_letters(corpus), {}),
        kept=attempt("Samples of kept documents", lambda: kept_texts(corpus), ()),
        missing=tuple(missing),
        times=times,
        damaged=attempt("Damaged inputs", lambda: damaged_files(store, manifest), ()),
    )


def lane_stages(lane: str, writer: str = "") -> Iterable[AnyStage]:
    """The stages of a lane by its name; of all lanes, if it is none of the project's. writer: the one that a recipe may
    have named in place of the lane's own, or that of its layout."""
    if lane not in lane_names():
        return all_stages()
    return with_target(with_writer(find_lane(lane), {"writer": writer, "layout": writer})[0]).stages


def stage_counts(funnel: Iterable[Mapping[str, Any]], seconds: Mapping[str, float]) -> list[StageCounts]:
    """The funnel summed over sources, in its order."""
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for row in funnel:
        stages.setdefault(row["stage"], []).append(row)
    return [_stage(name, rows, seconds.get(name)) for name, rows in stages.items()]


def _stage(name: str, rows: Sequence[Mapping[str, Any]], seconds: float | None) -> StageCounts:
    def total(outcome: str, unit: str) -> int:
        return sum(row[outcome][unit] for row in rows if outcome in row)

    def pairs(outcome: str, first: str, second: str) -> dict[str, tuple[int, int]]:
        sums: dict[str, list[int]] = {}
        for row in rows:
            for reason, entry in row.get(outcome, {}).items():
                pair = sums.setdefault(reason, [0, 0])
                pair[0] += entry[first]
                pair[1] += entry[second]
        ordered = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
        return {reason: (one, two) for reason, (one, two) in ordered}

    scored: dict[str, Counter[float]] = {}
    for row in rows:
        for series, bins in row.get("scored", {}).items():
            for edge, documents in bins:
                scored.setdefault(series, Counter())[edge] += documents
    return StageCounts(
        name=name,
        entered=total("in", "documents"),
        entered_bytes=total("in", "bytes"),
        kept=total("kept", "documents"),
        kept_bytes=total("kept", "bytes"),
        created=total("created", "documents"),
        dropped=pairs("dropped", "documents", "bytes"),
        dead=pairs("dead", "documents", "bytes"),
        found=pairs("found", "items", "documents"),
        scored=scored,
        seconds=seconds,
    )


__all__ = ["PRICE", "Facts", "StageCounts", "read_facts", "stage_counts"]
