"""What a page must not show: texts dropped for what they say, and documents whose owners took them out.

`trace` and `show` follow the same rules; a browser is easier to look over the shoulder of, so toxic pages are left out,
too.
"""

from collections.abc import Iterable

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.trace.answers import Doc, TakenDown

TOXICITY = "toxicity"  # stages by name: their declarations import what runs them
WITHDRAWN = "opt-out"  # of its drops not even the address is shown


def withheld_stages(lane: str) -> frozenset[str]:
    """Names of the stages whose drops have no text on any page: those that say so (`excerpts`), toxicity, opt-outs."""
    from refinery.pipelines.reports.run.facts import lane_stages  # all stages

    declared = (stage.name for stage in lane_stages(lane) if not stage.excerpts)
    return frozenset({*declared, TOXICITY, WITHDRAWN})


def taken_down(corpus: Corpus, docs: Iterable[Doc]) -> list[TakenDown]:
    """The takedowns of these documents, and of others that were made of the same records. Cost: the listings of the
    takedowns; nothing without one."""
    if not corpus.versions:
        return []
    from refinery.pipelines.corpus.trace.takedowns import find_taken_down  # and what removes documents
    from refinery.pipelines.published.find_rows import Wanted

    docs = list(docs)
    wanted = Wanted(
        id=frozenset(bytes.fromhex(doc.id) for doc in docs if doc.id),
        origin=frozenset(doc.origin for doc in docs if doc.origin),
    )
    return list(find_taken_down(corpus, wanted))
