"""What becomes of the families of documents that go: which duplicates come back, and which document stands for which.

Their families are deduplicated again without them, by the code of phase 2 (attribute.py), and what is kept goes through
the stages of phase 3 (judge.py). So ids, tokens, places, representatives and counts are those that a run without these
documents would have given them. A duplicate that does not come back though it is none any more is left out as well, and
its family decided once more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA, REPLACED
from refinery.loader.read.versions.listings import listed_rows
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.place import SourceCorpus
from refinery.pipelines.corpus.remove.attribute import Attributed, Attribution
from refinery.pipelines.corpus.remove.decide import Decision
from refinery.pipelines.corpus.remove.families import Absent, find_families
from refinery.pipelines.corpus.remove.fates import (
    Demoted,
    Fate,
    Lost,
    Moved,
    Outcome,
    Recount,
    Reinstated,
    Unrepresented,
    none_of,
)
from refinery.pipelines.corpus.remove.judge import Allowed, Judge
from refinery.pipelines.corpus.remove.kept_work import KeptWork, NotKept, read_kept_work
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.corpus.remove.rows import Key, Removals, Row, copies_of, key_of, locate
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import text_bytes

NOT_THERE = "its text is not among the parts of the run"
TARGET = "its source has a target, which is met without it or not at all"


def reinstate(
    corpus: SourceCorpus,
    decision: Decision,
    allowed: Allowed,
    place: Place,
    work: str,
    recipe_file: str,
    runner: Runner,
) -> Outcome:
    """What becomes of every candidate, and of all others of its family.

    Cost: as of `find_families`; phase 2 on the families; and the stages of phase 3 for what comes back. Memory: as of
    `find_families`, and about 2 kB for each document of a family.
    """
    if not decision.gone and not decision.deleted:
        return Outcome()
    try:
        kept = read_kept_work(corpus, work, recipe_file, runner.use_code)
        _check_cuts(kept.recipe)
        return Families(corpus, kept, decision, allowed, place).settle()
    except NotKept as error:
        return none_of(decision.candidates, str(error))


def _check_cuts(recipe: Recipe) -> None:
    """What is cut out of a document depends on all others; of removed ones phase 2 has not noted it."""
    for stage, _ in recipe.cutting():
        raise NotKept(f"the recipe has {stage.key} on, and what would be cut out of it is not known")


def earlier(store: Store, corpus: SourceCorpus) -> Absent:
    """Records that are in the corpus no more since the takedowns before: neither in a shard nor in removals/."""
    gone = set[Key]()
    for takedown in corpus.manifest.takedowns:
        columns = ("id", "source", "origin", "why")
        gone |= {
            key_of(row)
            for row in listed_rows(store, takedown.removed, REMOVED_SCHEMA, columns)
            if row["why"] != REPLACED
        }
        if takedown.added:
            gone -= {key_of(row) for row in listed_rows(store, takedown.added, ADDED_SCHEMA, columns[:3])}
    return Absent.of(gone)


@dataclass
class Families:
    """The families of what goes, and what becomes of them. unfit: why documents do not come back that would."""

    corpus: SourceCorpus
    kept: KeptWork
    decision: Decision
    allowed: Allowed
    place: Place
    unfit: dict[Key, str] = field(default_factory=dict)
    judged: dict[Key, tuple[Attributed, Reinstated | Lost]] = field(default_factory=dict)

    def settle(self) -> Outcome:
        """What becomes of all their documents."""
        recipe, store = self.kept.recipe, self.corpus.store
        gone = {key_of(row) for row in (*self.decision.gone, *self.decision.deleted)}
        absent = earlier(store, self.corpus) | Absent.of(gone)
        candidates = {key_of(row): row for row in self.decision.candidates}
        found = find_families(self.kept.parts, self.kept.compared, gone, absent, candidates)
        self.attribution = Attribution(recipe, self.kept.compared, self.place, self.kept.salt, self.kept.withheld)
        self.attribution.hold(found)
        removals = Removals(store, self.corpus.manifest)
        rows = removals.of({key[0] for key in self.attribution.records})
        self.was = {key: row for row in rows if (key := key_of(row)) in self.attribution.records}
        self.judge = Judge(recipe, self.allowed, recipe.counted(), self.kept.digests)
        for key, document in self.attribution.documents(key for key in candidates if key in self.attribution.records):
            if why := TARGET if document.source in recipe.targets() else self.judge.refuses(document):
                self.unfit[key] = why
        self.attribution.decide(self.unfit)
        while more := self._unfit():
            self.unfit |= more
            self.attribution.without(more, absent | Absent.of(self.unfit))
        fates: list[Fate] = [Unrepresented(row, NOT_THERE) for key, row in candidates.items() if key not in found.sizes]
        fates += [Unrepresented(self.was[key], why) for key, why in sorted(self.unfit.items())]
        kept = [each for key, each in self.attribution.decided.items() if key not in self.was]
        places = {key_of(row): row for row in locate(store, self.corpus.manifest, {each.key[0] for each in kept})}
        fates += sorted([*self._duplicates(), *self._demoted(kept, places)], key=lambda fate: key_of(fate.row))
        return Outcome(fates, self.judge.counted, list(_recounts(kept, places)), found.sizes)

    def _unfit(self) -> dict[Key, str]:
        """Duplicates that are none any more, and cannot come back. Judges each that would, as it would be published."""
        back = {}
        for key in self.was:
            now = self.attribution.decided.get(key)
            if now and now.removal is None and (key not in self.judged or self.judged[key][0] != now):
                back[key] = now
        found: dict[Key, str] = {}
        for key, document in self.attribution.documents(back):
            if document.source in self.kept.recipe.targets():
                found[key] = TARGET
                continue
            fate = self.judge.fate(self.was[key], document, back[key].copies, back[key].sources)
            if isinstance(fate, Unrepresented):
                found[key] = fate.why
            else:
                self.judged[key] = back[key], fate
        return found

    def _duplicates(self) -> Iterator[Fate]:
        """What becomes of documents that removals/ had."""
        moved = {}
        for key, was in self.was.items():
            now = self.attribution.decided.get(key)
            if now is None:
                continue
            if now.removal is None:
                yield self.judged[key][1]
            elif not _same(was, now.removal):
                moved[key] = was, now.removal
        for key, document in self.attribution.documents(moved):
            yield Moved(moved[key][1], moved[key][0], text_bytes(document.text))

    def _demoted(self, kept: Iterable[Attributed], places: dict[Key, Row]) -> Iterator[Fate]:
        """What becomes of documents that were kept, and are duplicates now. Raises RefineError where the stages say
        something else of one than they did."""
        lower = {each.key: each.removal for each in kept if each.removal is not None}
        removals = Removals(self.corpus.store, self.corpus.manifest)
        copies = copies_of(removals, {key[0] for key in lower if key not in places})
        for key, document in self.attribution.documents(lower):
            if document.source in self.kept.recipe.targets():
                continue  # whether it is in the corpus is for the target to say
            place = places.get(key)
            count, sources = (place["copies"], place["sources"]) if place else copies.get(key[0], (1, [key[1]]))
            answer = self.judge.publish({}, document, count, sources)
            if isinstance(answer, Unrepresented) and place is None:
                continue  # a dead letter, which it stays
            if isinstance(answer, Unrepresented) or isinstance(answer, Reinstated) != (place is not None):
                raise RefineError(
                    f"{document.origin}: the stages of the recipe now judge it differently, so families "
                    "cannot be decided again; pass --no-reinstate to skip this step"
                )
            row = lower[key]
            if place is not None:
                place = {**place, "why": REPLACED, "request": "", "kept_id": row["kept_id"]}
            yield Demoted(row, answer.size, answer.steps, place)


def _recounts(kept: Iterable[Attributed], places: dict[Key, Row]) -> Iterator[Recount]:
    for each in kept:
        place = places.get(each.key)
        if place and each.removal is None and (place["copies"], tuple(place["sources"])) != (each.copies, each.sources):
            yield Recount(place, each.copies, each.sources)


def _same(one: Row, other: Row) -> bool:
    names = ("kept_id", "reason", "scope")
    return all(one[name] == other[name] for name in names) and np.float32(one["similarity"]) == np.float32(
        other["similarity"]
    )


__all__ = ["Allowed", "Outcome", "reinstate"]
