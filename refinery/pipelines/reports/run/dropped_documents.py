"""Examples of what each reason dropped, exact over the whole run: from dropped.json, with excerpts from rejects/."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.published.dropped import DroppedDocument, DroppedFile
from refinery.pipelines.reports.run.samples import ADDRESS, EXCERPT, Reject, Rejects, batches, cut, read_rejects
from refinery.transforms.core.lane import AnyStage

MOST_EXAMPLES = 2000  # on a page; of more than 100 reasons each has fewer than 20
COLUMNS = ("stage", "reason", "source", "origin", "excerpt")
# What no page quotes: texts of whom that did not want it, and what nobody should read.
HIDDEN = frozenset(("rights", "credentials", "personal-data", "harmful"))

Key = tuple[str, str]  # stage, reason


def may_quote(stage: AnyStage | None) -> bool:
    """Whether a page may show texts that a stage dropped. Of a stage that nobody here knows, no."""
    return stage is not None and stage.excerpts and HIDDEN.isdisjoint(stage.concerns)


def dropped_documents(corpus: Corpus, recorded: DroppedFile | None, declared: Mapping[str, AnyStage]) -> Rejects:
    """Examples of all reasons. Where the corpus does not say them (an older version, a takedown), a few from rejects/.

    Cost: dropped.json; where the recipe has excerpts also rejects/, a batch of rows at a time.
    """
    if recorded is None:
        found = read_rejects(corpus)
        samples = {key: [quotable(each, declared.get(key[0])) for each in some] for key, some in found.samples.items()}
        return replace(found, samples=samples)
    older = read_rejects(corpus) if len(recorded.phases) < 2 else Rejects({}, {}, 0, 0)
    each = max(1, min(20, MOST_EXAMPLES // max(1, len(recorded.reasons))))
    samples = {(one.stage, one.reason): [_reject(doc) for doc in one.documents[:each]] for one in recorded.reasons}
    if corpus.manifest.recipe.get("rejects", {}).get("excerpt_chars", 0):
        samples = with_excerpts(samples, corpus)
    samples = {key: [quotable(each, declared.get(key[0])) for each in some] for key, some in samples.items()}
    return replace(older, samples={**older.samples, **samples}, is_whole=len(recorded.phases) == 2)


def _reject(doc: DroppedDocument) -> Reject:
    values = tuple((each.name, each.value, each.limit) for each in doc.values)
    return Reject(doc.source, cut(doc.url, ADDRESS), doc.origin, "", doc.found, values, doc.size)


def quotable(reject: Reject, stage: AnyStage | None) -> Reject:
    """The document without its text where no page may quote it."""
    return reject if may_quote(stage) else replace(reject, excerpt="")


def with_excerpts(samples: Mapping[Key, Sequence[Reject]], corpus: Corpus) -> dict[Key, list[Reject]]:
    """The documents with the texts that rejects/ has of them. Memory: a batch of rows, and these texts."""
    wanted = {each.origin for some in samples.values() for each in some}
    texts = dict(excerpts(corpus, wanted))
    return {
        key: [replace(each, excerpt=texts.get((*key, each.source, each.origin), "")) for each in some]
        for key, some in samples.items()
    }


def excerpts(corpus: Corpus, origins: Iterable[str]) -> Iterator[tuple[tuple[str, str, str, str], str]]:
    """(stage, reason, source, origin) -> the beginning of the text, of the rows of rejects/ with these origins."""
    wanted = pa.array(sorted(origins), pa.string())
    for batch in batches(corpus, [entry.path for entry in corpus.files("rejects")]):
        some = batch.filter(pc.is_in(batch["origin"], value_set=wanted))
        for row in some.select(list(COLUMNS)).to_pylist():
            yield (row["stage"], row["reason"], row["source"], row["origin"]), cut(row["excerpt"], EXCERPT)
