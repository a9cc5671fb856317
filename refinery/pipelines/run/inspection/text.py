"""The output of `refinery inspect` as text and JSON. Names come from files, so unprintable characters are escaped."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from refinery.loader.format.manifest import TokenFacts
from refinery.loader.format.shard_list import as_shards
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.published.outputs import ACCOUNTS, outputs_of
from refinery.pipelines.published.packed_counts import packed_line
from refinery.pipelines.run.empty_sources import empty_sources, loss_warnings
from refinery.pipelines.run.funnel import funnel_table
from refinery.pipelines.run.inspection.inspection import PHASES, Inspection, PhaseState
from refinery.pipelines.run.source_table import source_rows, source_table, tokens_by_source
from refinery.pipelines.runners.dataflow.job_records import JobRecord, cancel_command
from refinery.pipelines.runners.dataflow.jobs import ENDED
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import many

LINE = 2_000  # characters of a line that are shown
SHOWN_ENDED = 3  # of the jobs that succeeded, the last ones; running and failed jobs are always shown


def json_line(found: Inspection) -> str:
    """One ASCII JSON object."""
    fields: dict[str, Any] = asdict(replace(found, manifest=None))  # not a copy of each of its entries
    fields["dead"], fields["next"] = found.dead, list(advice(found))
    fields["sources"] = list(_sources(found))
    if found.manifest is not None:
        fields["manifest"] = summary(found)
    return json.dumps(fields)


def _sources(found: Inspection) -> Iterator[dict[str, Any]]:
    return source_rows(found.funnel, tokens_by_source(found.manifest) if found.manifest else {})


def summary(found: Inspection) -> dict[str, Any]:
    """The manifest without its lists of files."""
    manifest = found.manifest
    if manifest is None:
        return {}
    shards, others = as_shards(manifest.shards), (*manifest.files, *manifest.listings)
    files, size = shards.all_files()
    return {
        "name": manifest.name,
        "fingerprint": manifest.fingerprint,
        "totals": dict(manifest.totals),
        "shards": {
            split: sum(run.shards for run in shards.runs if run.split == split)
            for split in sorted({run.split for run in shards.runs})
        },
        "packed": packed_line(manifest),
        "domains": sorted(set(shards.domains())),
        "writer": manifest.written.writer,
        **(tokens_summary(manifest.tokens) if manifest.has_tokens else {}),
        "files": files + len(others),
        "bytes": size + sum(file.size for file in others),
        "versions": dict(manifest.versions),
    }


def tokens_summary(tokens: TokenFacts) -> dict[str, Any]:
    """What its writer states of tokens."""
    return {"dtype": tokens.dtype, "vocab_size": tokens.tokenizer.vocab_size, "tokenizer": tokens.tokenizer.path}


def text_lines(found: Inspection) -> Iterator[str]:
    """The state first, the next step last."""
    yield from (safe(line if len(line) <= LINE else f"{line[: LINE - 1]}…") for line in _lines(found))


def _lines(found: Inspection) -> Iterator[str]:
    yield f"{found.prefix}: {headline(found)}"
    for problem in found.problems:
        yield f"  ! {problem}"
    for note in found.notes:
        yield f"  ({note})"
    if found.name:
        yield f"name          {found.name}"
        yield f"fingerprint   {found.fingerprint}"
    for source, count in found.inputs.items():
        yield f"input         {source}: {many(count['files'], 'file')}, {human_bytes(count['bytes'])}"
    for number, phase in enumerate(found.phases, 1):
        yield f"phase {number} of 3  {phase.name}: {describe(phase)}"
        for root in phase.waves_from:
            yield f"              waves reused from {root}"
        for folder, count in phase.parts.items():
            size = human_bytes(count["bytes"])
            yield f"              {folder}/ {many(count['files'], 'file')}, {many(count['rows'], 'row')}, {size}"
    yield from _jobs(found.jobs)
    if found.manifest is not None:
        yield from _manifest(summary(found))
    if any(row["in"]["documents"] for row in found.funnel):
        yield ""
        tokens = found.manifest.totals.get("tokens") if found.manifest else None
        yield from funnel_table(found.funnel, found.seconds, tokens)
        yield from source_table(_sources(found), found.manifest is None or found.manifest.has_tokens)
        yield from loss_warnings(found.funnel)
    for stage, errors in found.dead.items():
        place = f"{(found.prefix if found.manifest else found.work).rstrip('/')}/dead_letters"
        yield f"dead letters of {stage}: {', '.join(f'{e} {n:,}' for e, n in errors.items())}; listed in {place}"
    yield ""
    yield from advice(found)


def headline(found: Inspection) -> str:
    """The state in a few words."""
    if found.state == "started":
        phase = next((phase for phase in found.phases if phase.state != "done"), None)
        if phase is None:
            return "all phases are done, but the manifest is not written yet"
        progress = "in progress" if phase.state == "in progress" else "not finished"
        return f"phase {PHASES.index(phase.name) + 1} of 3 is {progress}"
    return {
        "empty": "the prefix is empty",
        "foreign": "not a prefix of Refinery, because it has neither _run.json nor manifest.json",
        "damaged": "files are damaged",
        "running": "a job was launched on Dataflow, and its end is not recorded",
        "complete": "the corpus is complete",
    }[found.state]


def describe(phase: PhaseState) -> str:
    """A phase's state as text."""
    if phase.state == "in progress":
        total = "" if phase.waves_left is None else f" of {phase.waves + phase.waves_left}"
        return f"{phase.waves}{total} waves are done"
    return phase.state + (f", reused from {phase.root}" if phase.root else "")


def _jobs(jobs: tuple[JobRecord, ...]) -> Iterator[str]:
    succeeded = [job for job in jobs if job.state == "DONE"]
    hidden = succeeded[:-SHOWN_ENDED]
    if hidden:
        yield f"jobs          {len(hidden):,} earlier ones are DONE"
    for job in jobs:
        if job not in hidden:
            yield f"job {job.key:<10}{job.state}  {job.id}  {job.link}"
            yield from (f"              {line}" for line in job.errors)


def _manifest(facts: dict[str, Any]) -> Iterator[str]:
    totals, shards = facts["totals"], facts["shards"]
    text = human_bytes(totals["bytes"])
    tokens = f" {many(totals['tokens'], 'token')}," if "tokens" in totals else ""
    yield f"corpus        {many(totals['documents'], 'document')},{tokens} {text} of text"
    yield f"shards        {', '.join(f'{n:,} {split}' for split, n in shards.items())} of {', '.join(facts['domains'])}"
    if facts["packed"]:
        yield f"packed        {facts['packed']}"
    yield f"files         {facts['files']:,}, {human_bytes(facts['bytes'])}"
    if "dtype" in facts:
        yield f"tokens        {facts['dtype']}, vocabulary {facts['vocab_size']:,}, {facts['tokenizer']}"
    else:
        yield f"texts         written by {facts['writer']}"
    yield f"made with     {', '.join(f'{name} {version}' for name, version in facts['versions'].items())}"


def advice(found: Inspection) -> Iterator[str]:
    """What to do next."""
    work = "" if found.work == f"{found.prefix.rstrip('/')}/work" else f" --work {found.work}"
    place = f"--output {found.prefix}{work}"
    if found.state == "empty":
        yield f"next: refinery refine RECIPE {place}"
    elif found.state == "foreign":
        yield "next: choose another --output for a run"
    elif found.state == "damaged":
        yield "next: restore the files named above from a copy; or run the recipe with another --output, where"
        yield f"      --reuse {found.work if work else found.prefix} reuses the undamaged phases"
    elif found.state == "complete":
        yield f"next: refinery verify {found.prefix}"
    else:
        if found.prefix.rstrip("/").endswith(ACCOUNTS):  # of one step
            yield f"next: the command in the first lines of {outputs_of(found.prefix)}.yaml resumes the run"
        else:
            yield f"next: refinery {'tokenize TEXTS' if found.texts else 'refine RECIPE'} … {place}"
            yield "      (the command that started the run resumes it)"
        cleaned = any(phase.name == PHASES[0] and phase.state == "done" for phase in found.phases)
        if cleaned and (empty := empty_sources(found.funnel)):
            names = safe(", ".join(empty))
            yield f"      it stops, since nothing is kept of {names}, unless failures.allow_empty allows that"
        for job in found.jobs:
            if job.state not in (*ENDED, "UNKNOWN"):
                yield f"      it waits for the job; --live shows its state; cancel it: {cancel_command(job)}"
