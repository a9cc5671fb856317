"""What an audit has to believe of takedowns: nobody but their listings says what was asked for, and by whom."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest, unseal
from refinery.loader.format.shard_files import read_file
from refinery.loader.format.takedown import COPY, REQUESTED, STAGE, UNREPRESENTED
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.audit.outcome import COUNTS, Finding, Outcome
from refinery.pipelines.corpus.audit.sample import Row
from refinery.pipelines.corpus.remove.request import LISTS, Request, where_rule
from refinery.transforms.dedup.stages import DEDUP

WORDS = {
    REQUESTED: "it was asked for",
    COPY: "it has the text of one that was asked for, or stood for it",
    UNREPRESENTED: "the document kept instead was removed",
}
STAGE_OF = {reason.name: stage.name for stage in DEDUP for reason in stage.reasons}
REJECT_GONE = "dropped, and a takedown may have removed its row of rejects/"


@dataclass(frozen=True)
class BelievedTakedown:
    """A takedown by its proof. lists: names of the lists that asked, of which only digests are known. request: what
    asked beside them. rejects: rows of rejects/ that went."""

    number: int
    lists: tuple[str, ...]
    request: Request
    documents: int
    duplicates: int
    rejects: int

    @property
    def line(self) -> str:
        """What is believed, for people."""
        asked = [f"--{name} (a list known by its SHA-256 alone)" for name in self.lists]
        asked += [f"--source {name}" for name in self.request.sources]
        asked += [f"--licence {name}" for name in self.request.licences]
        asked += [f"--where {self.request.where.text}"] if self.request.where else []
        return (
            f"takedown {self.number}, by {', '.join(asked) or '--benchmarks'}: that {self.documents:,} documents, "
            f"{self.duplicates:,} duplicates and {self.rejects:,} rows of rejects/ went is taken from its listing"
        )

    def took_reject(self, row: Mapping[str, Any]) -> bool:
        """Whether it may have taken out a row of rejects/: where it took any, and a list or a rule asks for it."""
        known = {name: [row[name]] for name in ("url", "source", "origin")}
        return self.rejects > 0 and (bool(self.lists) or bool(self.request.match(known)[0]))


@dataclass(frozen=True)
class Believed:
    """All takedowns that led to a corpus."""

    takedowns: tuple[BelievedTakedown, ...] = field(default_factory=tuple)

    def took_reject(self, row: Mapping[str, Any]) -> bool:
        return any(each.took_reject(row) for each in self.takedowns)

    def differences(self, manifest: Manifest, outcome: Outcome, is_whole: bool) -> Iterator[Finding]:
        """Where more rows of rejects/ are missing than takedowns took, and, of a whole audit, where the funnel counts
        other numbers of documents as taken out than the listings have."""
        missing, most = outcome.undecided[REJECT_GONE], sum(each.rejects for each in self.takedowns)
        if missing > most:
            says = "{} rows of rejects/ are not there for takedowns"
            yield Finding(COUNTS, "", "", "", says.format(missing), says.format(most))
        if not is_whole or not self.takedowns:
            return
        stages = {STAGE, *STAGE_OF.values()}
        told = {
            (row["source"], row["stage"], why): count["documents"]
            for row in manifest.funnel
            if row["stage"] in stages
            for why, count in row["dropped"].items()
            if why in WORDS
        }
        for key in sorted({*told, *outcome.taken}):
            if (here := outcome.taken.get(key, 0)) != (there := told.get(key, 0)):
                says = f"{key[1]}, {key[2]}: {{}} documents"
                yield Finding(COUNTS, key[0], "", "", says.format(here), says.format(there))


def stage_of_taken(row: Row) -> str:
    """The stage of the funnel that counts a document of a listing as taken out."""
    return STAGE if row["split"] else STAGE_OF.get(row["was"], str(row["was"]))


def believed(store: Store, manifest: Manifest) -> Believed:
    """Of the proofs of all takedowns. Raises FormatError for one that is none."""
    entries = {entry.path: entry for entry in manifest.files}
    schema, found = manifest.row_schema, []
    for number, takedown in enumerate(manifest.takedowns, 1):
        if takedown.proof not in entries:
            raise FormatError(f"{takedown.proof}: not listed among the files of the manifest")
        proof = unseal(read_file(store, entries[takedown.proof]), takedown.proof)
        try:
            asked = proof["request"]
            where = where_rule(asked["where"], schema) if asked.get("where") else None
            request = Request({}, tuple(asked["licences"]), tuple(asked["sources"]), where)
            found.append(
                BelievedTakedown(
                    number,
                    tuple(name for name in LISTS if name in asked["lists"]),
                    request,
                    int(proof["removed"]["documents"]),
                    sum(map(int, proof["removed"]["duplicates"].values())),
                    int(proof["rejects_removed"]),
                )
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FormatError(f"{takedown.proof}: a field is missing or wrong ({type(error).__name__})") from None
    return Believed(tuple(found))
