"""The one-step commands as functions: `refinery.dedup(paths, output=…, near=0.8)` and its siblings.

They take what the commands take, do the same, raise what the commands print, and return the run's accounts as an open
corpus: what was kept and where it came from, what went and why.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack

import refinery.corpus
from refinery.pipelines.run.api import runner_flags, silent
from refinery.pipelines.run.steps.run_step import StepRun
from refinery.pipelines.run.steps.step import SHARDS, Inputs, Part
from refinery.pipelines.run.steps.steps import (
    DEDUP_LABELS,
    EXTRACT_LABELS,
    FILTER_LABELS,
    LANGUAGE_LABELS,
    REDACT_LABELS,
    dedup_parts,
    extract_parts,
    filter_parts,
    language_parts,
    redact_parts,
)
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.runners.scratch import scratch_of
from refinery.transforms.write.rows.writer import LAYOUT as AS_INPUT

Path = str | PathLike[str]
Paths = Path | Sequence[Path]


class Common(TypedDict, total=False):
    """What all steps take. text_field, url_field, id_field, date_field: names of the fields. format: of all inputs, by
    default by their names. layout: "as-input", a file for each input file, or "shards", a shuffled corpus of Parquet.
    settings: further keys of the recipe, "failures.max_ratio=0.1" each. runner, workers, flags, work, discard_work,
    scratch, quiet, say: as of `refinery.pipelines.refine`; here progress is shown unless `quiet`."""

    text_field: str
    url_field: str
    id_field: str
    date_field: str
    format: str
    layout: str
    settings: Sequence[str]
    runner: str
    workers: int | None
    flags: Sequence[str]
    work: str
    discard_work: bool
    scratch: str
    quiet: bool
    say: Callable[[str], None]


FIELDS = ("text_field", "url_field", "id_field", "date_field", "format")


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
    parts = dedup_parts(exact, near, lines, substrings, url, against, prefer)
    return _run("dedup", paths, output, parts, DEDUP_LABELS if annotate else (), common)


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
    parts = filter_parts(rules, language)
    labels = (*FILTER_LABELS, *(LANGUAGE_LABELS if language else ()))
    return _run("filter", paths, output, parts, labels if annotate else (), common)


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
    common["discard_work"] = True  # its parts hold the texts as they were
    labels = REDACT_LABELS[: None if secrets else 2]
    return _run("redact", paths, output, redact_parts(only, secrets), labels if annotate else (), common)


def detect_language(
    paths: Paths, output: Path, *, keep: Sequence[str] = (), **common: Unpack[Common]
) -> refinery.corpus.PublishedCorpus:
    """Label each text with its language, or keep some; as `refinery detect-language`. Raises what `dedup` raises."""
    return _run("detect-language", paths, output, language_parts(keep), () if keep else LANGUAGE_LABELS, common)


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
    is_rows = common["layout"] == AS_INPUT
    fields = {"text_field": html_field, "content": "html"} if html_field else {}
    parts = extract_parts(markdown, into if is_rows else "")
    return _run("extract", paths, output, parts, EXTRACT_LABELS if is_rows else (), common, fields)


def _run(
    name: str,
    paths: Paths,
    output: Path,
    parts: Sequence[Part],
    labels: Sequence[str],
    common: Common,
    fields: Mapping[str, Any] = {},
) -> refinery.corpus.PublishedCorpus:
    listed = (paths,) if isinstance(paths, (str, PathLike)) else paths
    given = {key: common[key] for key in FIELDS if common.get(key)}  # type: ignore[literal-required]  # of FIELDS
    inputs = Inputs(
        tuple(fspath(path) for path in listed), {**given, **fields}, common.get("layout", AS_INPUT), tuple(labels)
    )
    step = StepRun(name, inputs, parts, fspath(output), tuple(common.get("settings", ())))
    runner, work, say = common.get("runner", "local"), common.get("work", ""), common.get("say", silent)
    flags = runner_flags(step.recipe(), runner, common.get("flags", ()), step.accounts, work)
    scratch = scratch_of(common.get("scratch", ""), work or f"{step.accounts}/work")
    how: dict[str, Any] = {"flags": flags, "quiet": common.get("quiet", False), "say": say, "scratch": scratch}
    if (workers := common.get("workers")) is not None:
        how["workers"] = workers
    with Runner(runner, **how).open() as opened:
        step.run(opened, work, common.get("discard_work", False))
    return refinery.corpus.PublishedCorpus(step.accounts)
