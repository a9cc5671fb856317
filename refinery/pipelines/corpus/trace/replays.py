"""Answers about pages that were dropped, each with what the stages say when they judge the page again."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refinery.pipelines.corpus.trace.answers import (
    Answer,
    Dead,
    Doc,
    Missing,
    Passed,
    Query,
    Rejected,
    Removed,
    Trace,
)
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.published.scan import Say, scan

if TYPE_CHECKING:
    from refinery.pipelines.corpus.trace.recorded_run import RecordedRun


def replay_answers(found: Trace, prefix: str, recipe: str, search: bool, say: Say) -> Trace:
    """`search_inputs`, if asked to, then `with_replays`. The run is read only where there is something to judge."""

    def run() -> "RecordedRun":
        from refinery.pipelines.corpus.trace.recorded_run import RecordedRun  # all stages, and what reads recipes

        return RecordedRun(prefix, recipe)

    if search:
        found = search_inputs(found, run(), say)
    if any(needs_replay(query, answer) for query, answer in found.answers):
        found = with_replays(found, run())
    return found


def needs_replay(query: Query, answer: Answer) -> bool:
    """Whether judging the page again may say more."""
    if isinstance(answer, Missing):
        return query.field == "origin" and bool(answer.file_read)
    end = answer.end if isinstance(answer, Removed) else answer
    return isinstance(end, Rejected | Dead | Passed) and bool(end.doc.origin)


def with_replays(found: Trace, run: "RecordedRun") -> Trace:
    """The answers, those about pages that were dropped or failed, or that only their origin is known of, replayed."""
    return replace(found, answers=tuple((query, _replayed(query, answer, run)) for query, answer in found.answers))


def _replayed(query: Query, answer: Answer, run: "RecordedRun") -> Answer:
    if not needs_replay(query, answer):
        return answer
    if isinstance(answer, Removed) and isinstance(answer.end, Rejected | Dead | Passed):
        return replace(answer, end=replace(answer.end, replay=run.replayed(answer.end.doc)))
    if isinstance(answer, Rejected | Dead | Passed):
        return replace(answer, replay=run.replayed(answer.doc))
    replayed = run.replayed(Doc(origin=query.value))
    return answer if replayed.problem else replayed


def search_inputs(found: Trace, run: "RecordedRun", say: Say) -> Trace:
    """Read the inputs of the run for the URLs that were not found; the first record with each is replayed.

    Cost: one pass over all inputs, or up to the last URL that is there. `say` receives the size of the search and
    its progress.
    """
    wanted = {query.value for query, answer in found.answers if query.field == "url" and isinstance(answer, Missing)}
    if not wanted or run.problem:
        return found
    at: dict[str, Doc] = {}
    for url, doc in _records(run, wanted, say):
        at.setdefault(url, doc)
        if len(at) == len(wanted):
            break
    answers: Iterable[tuple[Query, Answer]] = (
        (query, run.replayed(at[query.value]) if query.field == "url" and query.value in at else answer)
        for query, answer in found.answers
    )
    return replace(found, answers=tuple(answers))


def _records(run: "RecordedRun", urls: Iterable[str], say: Say) -> Iterator[tuple[str, Doc]]:
    """(URL as it was asked for, where it is) of the records with one of them, in the order of the inputs."""
    entries = run.run["inputs"]
    total = sum(entry["size"] for entry in entries)
    say(f"searching {len(entries):,} inputs of the run, {human_bytes(total)}; Ctrl-C stops it")
    wanted = frozenset(urls)

    def look(entry: Mapping[str, Any]) -> list[tuple[str, Doc]] | str:
        return _look(run, entry, wanted)

    for result in scan(look, entries, "inputs", say):
        if isinstance(result, str):
            say(f"not searched: {result}")
        else:
            yield from result


def _look(run: "RecordedRun", entry: Mapping[str, Any], urls: frozenset[str]) -> list[tuple[str, Doc]] | str:
    from refinery.pipelines.corpus.replay.replay import NoReplay, unchanged
    from refinery.transforms.read.plan import whole_file
    from refinery.transforms.read.sources import read_task

    params = {each.name: each for each in run.recipe.sources}.get(str(entry["source"]))
    if params is None:
        return f"{Path(str(entry['path'])).name}: the recipe has no such source"
    try:
        task = whole_file(params, unchanged(entry, params.requester_pays), notes=run.recipe.notes())
        return [
            (url, Doc("", url, task.source, record.origin))
            for record in read_task(task, run.recipe.limits)
            if (url := getattr(record, "url", "")) in urls
        ]
    except (NoReplay, OSError) as error:
        return str(error)
