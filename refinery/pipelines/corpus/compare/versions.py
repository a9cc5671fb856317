"""Whether two corpora are versions of one, and which takedowns are between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from refinery.loader.format.takedown import Takedown, totals_of
from refinery.pipelines.corpus.compare.joining.side import Side


@dataclass(frozen=True)
class Relation:
    """A and B come from one version. previous: sha256 of its manifest. a, b: the takedowns from it to each of them,
    none where it is that side itself."""

    previous: str
    a: tuple[Takedown, ...]
    b: tuple[Takedown, ...]

    def lines(self) -> Iterator[str]:
        """In words."""
        if not self.a or not self.b:
            later, earlier, steps = ("B", "A", self.b) if self.b else ("A", "B", self.a)
            yield f"{later} is a later version of {earlier}: {_words(steps)}"
            return
        yield f"A and B are later versions of one corpus (its manifest has sha256 {self.previous})"
        yield from (f"{label}, since then: {_words(steps)}" for label, steps in (("A", self.a), ("B", self.b)))


def _words(steps: tuple[Takedown, ...]) -> str:
    """ "a takedown removed 3 documents with 120 tokens and reinstated 1 with 40"."""
    total = totals_of(steps)
    how = "a takedown" if len(steps) == 1 else f"{len(steps):,} takedowns"
    went, came = f"{total['documents']:,} documents", f"{total['added_documents']:,}"
    if total["tokens"] or total["added_tokens"]:  # else they are texts
        went, came = f"{went} with {total['tokens']:,} tokens", f"{came} with {total['added_tokens']:,}"
    return f"{how} removed {went} and reinstated {came}"


def relation(a: Side, b: Side) -> Relation | None:
    """The newest version that both come from, None where there is none, and where they are the same one."""
    chains = [[*(step.previous for step in side.manifest.takedowns), side.sha256] for side in (a, b)]
    shared = [version for version in chains[0] if version in chains[1]]
    if not shared or a.sha256 == b.sha256:
        return None
    steps = [side.manifest.takedowns[chain.index(shared[-1]) :] for side, chain in zip((a, b), chains, strict=True)]
    return Relation(shared[-1], *steps)
