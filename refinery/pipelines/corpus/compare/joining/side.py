"""One of the two corpora of a comparison, opened: its manifest, what its run says of itself, and its work files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, Manifest
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.transforms.core.names import OVER_TARGET, TARGET_STAGE

Input = tuple[str, str]  # source, path


@dataclass
class Side:
    """A corpus that is compared. label: "A" or "B". run: `_run.json`, {} where it is not
    there. phases: clean and dedup where their parts are still there, else None. notes: what could not be looked at, and
    why."""

    label: str
    prefix: str
    corpus: Corpus
    run: Mapping[str, Any]
    phases: tuple[Phase, Phase] | None
    notes: list[str] = field(default_factory=list)

    @property
    def store(self) -> Store:
        """What its files are in."""
        return self.corpus.store

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""
        return self.corpus.manifest

    @property
    def sha256(self) -> str:
        """Of its manifest."""
        return self.corpus.sha256

    @property
    def adopted(self) -> bool:
        """Whether another tool wrote its tokens; it then has no provenance."""
        return self.corpus.is_adopted

    @property
    def inputs(self) -> dict[Input, tuple[Any, Any]]:
        """(source, path) -> size and digest of every input file, as far as the run says."""
        entries = self.run.get("inputs")
        listed = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
        return {(str(e.get("source")), str(e.get("path"))): (e.get("size"), e.get("digest")) for e in listed}

    @property
    def knows_inputs(self) -> bool:
        """Whether an origin says if its file was an input: documents taken from another run keep theirs."""
        sources = self.manifest.recipe.get("sources") or ()
        earlier = any(isinstance(s, Mapping) and s.get("format") == "documents" for s in sources)
        return isinstance(self.run.get("inputs"), list) and not earlier

    @property
    def rate(self) -> float | None:
        """Share of the dropped documents that rejects/ lists; None where the recipe does not say."""
        rejects = self.manifest.recipe.get("rejects")
        rate = rejects.get("rate") if isinstance(rejects, Mapping) else None
        return rate if isinstance(rate, int | float) and not isinstance(rate, bool) else None

    @property
    def cut_sources(self) -> frozenset[str]:
        """Sources of which documents were left out as beyond their targets."""
        return frozenset(
            row["source"]
            for row in self.manifest.funnel
            if row["stage"] == TARGET_STAGE and row["dropped"].get(OVER_TARGET)
        )

    def files(self, folder: str) -> Sequence[str]:
        """Published files below that folder, in order."""
        return [entry.path for entry in self.corpus.files(folder)]

    def checksums(self) -> Iterator[tuple[str, str]]:
        """(path, sha256) of every file of tokens, or of texts."""
        return ((shard.content.path, shard.content.sha256) for shard in self.manifest.shards)


def open_side(label: str, prefix: str, work: str = "") -> Side:
    """The corpus at a prefix (a local folder, gs:// or s3://). work: where its parts are, by default PREFIX/work.

    Raises FormatError where there is no complete corpus, OSError for what cannot be read.
    """
    side = Side(label, prefix, Corpus(prefix), {}, None)
    if side.adopted:
        side.notes.append(
            f"{label} was adopted from files of another tool and has no provenance and no funnel; its documents are "
            "not compared"
        )
        return side
    try:
        side.run = side.corpus.run
    except FileNotFoundError:
        side.notes.append(f"{label} has no {RUN}: its inputs, libraries and phases are not known")
        return side
    place = work or f"{prefix.rstrip('/')}/work"
    try:
        clean, dedup = (read_phase(place, name, side.run["phases"][name]) for name in ("clean", "dedup"))
    except (FormatError, OSError, KeyError, TypeError) as error:
        side.notes.append(f"the work files of {label} were not read: {error}")
        return side
    side.phases = (clean, dedup) if clean and dedup else None
    if side.phases is None:
        side.notes.append(
            f"the work files of {label} are not in {place}, so it is not known whether a document that it lost passed "
            f"its cleaning; --work-{label.lower()} names another place"
        )
    return side


def moved_inputs(a: Side, b: Side) -> dict[str, str]:
    """Path of an input of B -> its path in A, of files that only their place tells apart: there is one file of
    that size and digest on each side, and neither path is an input of the other side."""
    paths_a, paths_b = ({path: facts for (_, path), facts in side.inputs.items()} for side in (a, b))
    only_a = {path: facts for path, facts in paths_a.items() if path not in paths_b}
    only_b = {path: facts for path, facts in paths_b.items() if path not in paths_a}
    here, there = _by_facts(only_a), _by_facts(only_b)
    return {there[facts]: here[facts] for facts in there if facts in here}


def _by_facts(paths: Mapping[str, tuple[Any, Any]]) -> dict[tuple[str, str], str]:
    """(size, digest) -> path, of those that one path alone has."""
    found: dict[tuple[str, str], list[str]] = {}
    for path, (size, digest) in paths.items():
        if size and digest:
            found.setdefault((str(size), str(digest)), []).append(path)
    return {facts: listed[0] for facts, listed in found.items() if len(listed) == 1}
