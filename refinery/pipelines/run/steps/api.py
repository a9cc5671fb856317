"""The one-step commands as functions: `refinery.dedup(paths, output=…, near=0.8)` and its siblings.

They take what the commands take, do the same, raise what the commands print, and return the run's accounts as an open
corpus: what was kept and where it came from, what went and why.
"""

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack

import refinery.corpus
from refinery.pipelines.run.api import runner_flags, silent
from refinery.pipelines.run.steps.run_step import StepRun
from refinery.pipelines.run.steps.step import FIELDS, SHARDS, Step, inputs_of
from refinery.pipelines.run.steps.steps import dedup_step, extract_step, filter_step, language_step, redact_step
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.runners.scratch import scratch_of
from refinery.pipelines.shell.arguments import SOURCE_FIELDS
from refinery.transforms.write.rows.writer import LAYOUT as AS_INPUT

Path = str | PathLike[str]
Paths = Path | Sequence[Path]


class Common(TypedDict, total=False):
    """What all steps take. text_field, url_field, id_field, date_field: names of the fields. format: of all inputs, by
    default by their names. layout: "as-input", a file for each input file, or "shards", a shuffled corpus of Parquet.
    labels_as: where labels go, "fields" of the rows, or "attributes", files of their own. settings: further keys of the
    recipe, "failures.max_ratio=0.1" each. runner, workers, flags, work, discard_work, scratch, quiet, say: as of
    `refinery.pipelines.refine`; here progress is shown unless `quiet`."""

    text_field: str
    url_field: str
    id_field: str
    date_field: str
    format: str
    layout: str
    labels_as: str
    settings: Sequence[str]
    runner: str
    workers: int | None
    flags: Sequence[str]
    work: str
    discard_work: bool
    scratch: str
    quiet: bool
    say: Callable[[str], None]


def dedup(
    paths: Paths,
    output: Path,
    *,
    exact: bool = False,
    near: float | None = None,
    lines: bool = False,
    substrings: bool = False,
    url: bool = False,
    against: Sequence[str] = (),
    prefer: str = "first",
    annotate: bool = False,
    **common: Unpack[Common],
) -> refinery.corpus.PublishedCorpus:
    """Remove copies; as `refinery dedup`. paths: files or globs. output: where the files go.

    Raises ValueError for what is wrong with the inputs, before anything runs, RefineError, and whatever a job raises.
    Called again, it goes on where it stopped.
    """
    step = dedup_step(exact, near, lines, substrings, url, against, prefer)
    return _run(step, paths, output, annotate, common)


def filter(
    paths: Paths,
    output: Path,
    *,
    rules: Sequence[str] = (),
    language: Sequence[str] = (),
    annotate: bool = False,
    **common: Unpack[Common],
) -> refinery.corpus.PublishedCorpus:
    """Keep what passes published rules; as `refinery filter`. Raises what `dedup` raises."""
    return _run(filter_step(rules, language), paths, output, annotate, common)


def redact(
    paths: Paths,
    output: Path,
    *,
    only: Sequence[str] = (),
    secrets: bool = True,
    annotate: bool = False,
    **common: Unpack[Common],
) -> refinery.corpus.PublishedCorpus:
    """Replace personal data and credentials; as `refinery redact`. Raises what `dedup` raises."""
    return _run(redact_step(only, secrets), paths, output, annotate, common)


def detect_language(
    paths: Paths, output: Path, *, keep: Sequence[str] = (), **common: Unpack[Common]
) -> refinery.corpus.PublishedCorpus:
    """Label each text with its language, or keep some; as `refinery detect-language`. Raises what `dedup` raises."""
    return _run(language_step(keep), paths, output, False, common)


def extract(
    paths: Paths,
    output: Path,
    *,
    html_field: str = "",
    into: str = "text",
    markdown: bool = False,
    **common: Unpack[Common],
) -> refinery.corpus.PublishedCorpus:
    """Take the main text out of HTML; as `refinery extract`. Raises what `dedup` raises."""
    common.setdefault("layout", AS_INPUT if html_field else SHARDS)
    step = extract_step(html_field, markdown, into if common["layout"] == AS_INPUT else "")
    return _run(step, paths, output, False, common)


def _run(step: Step, paths: Paths, output: Path, annotate: bool, common: Common) -> refinery.corpus.PublishedCorpus:
    listed = (paths,) if isinstance(paths, (str, PathLike)) else paths
    given = {key: value for key, value in common.items() if key in (*SOURCE_FIELDS, "format") and value}
    where = common.get("layout", AS_INPUT), annotate, common.get("labels_as", FIELDS)
    inputs = inputs_of(step, [fspath(path) for path in listed], given, *where)
    run = StepRun(step, inputs, fspath(output), tuple(common.get("settings", ())))
    runner, work, say = common.get("runner", "local"), common.get("work", ""), common.get("say", silent)
    flags = runner_flags(run.recipe(), runner, common.get("flags", ()), run.accounts, work)
    scratch = scratch_of(common.get("scratch", ""), work or f"{run.accounts}/work")
    how: dict[str, Any] = {"flags": flags, "quiet": common.get("quiet", False), "say": say, "scratch": scratch}
    if (workers := common.get("workers")) is not None:
        how["workers"] = workers
    with Runner(runner, **how).open() as opened:
        run.run(opened, work, common.get("discard_work", False))
    return refinery.corpus.PublishedCorpus(run.accounts)
