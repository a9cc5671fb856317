"""Texts of dropped documents that no file has: each is read at its origin and judged again, on this machine.

They go to a page that is no file of the corpus. Secrets are redacted in them, personal data as the recipe says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from refinery.pipelines.reports.run.dropped_documents import Key, may_quote
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.samples import Reject, cut

TEXT = 2_000  # characters of each
MOST_PROBLEMS = 5  # that are told


@dataclass(frozen=True)
class Text:
    """What a replay says: the text, the stage that lost it ("" for none), and why there is no text."""

    text: str = ""
    lost_by: str = ""
    problem: str = ""


Replayed = Callable[[str, str], Text]  # origin, source


def with_texts(facts: Facts, replayed: Replayed) -> tuple[Facts, list[str]]:
    """The facts with the texts of dropped documents, and the first problems. Documents of reasons that no page may
    quote are not read. Cost: a read at the origin, and the stages, for each document without an excerpt."""
    problems: list[str] = []

    def of(key: Key, reject: Reject) -> Reject:
        if reject.excerpt:
            return reject
        found = replayed(reject.origin, reject.source)
        if found.problem:
            problems.append(found.problem)
        later = facts.declared.get(found.lost_by)
        is_fit = not found.lost_by or may_quote(later)
        return replace(reject, excerpt=cut(found.text, TEXT)) if is_fit else reject

    samples: dict[Key, Sequence[Reject]] = {
        key: [of(key, each) for each in some] if may_quote(facts.declared.get(key[0])) else some
        for key, some in facts.rejects.samples.items()
    }
    told = list(dict.fromkeys(problems))
    more = [f"and {len(told) - MOST_PROBLEMS:,} more"] if len(told) > MOST_PROBLEMS else []
    return replace(facts, rejects=replace(facts.rejects, samples=samples), quotes=True), [*told[:MOST_PROBLEMS], *more]
