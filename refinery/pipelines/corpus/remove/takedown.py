"""`refinery remove`: a new version of a finished corpus without some of its documents, and the proof that they went."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import pyarrow as pa

from refinery.loader.errors import FormatError, NoTexts
from refinery.loader.format.manifest import Manifest
from refinery.pipelines.corpus.export.place import SourceCorpus, open_corpus
from refinery.pipelines.corpus.export.rows import CorpusFacts, corpus_facts
from refinery.pipelines.corpus.export.work_place import digest
from refinery.pipelines.corpus.remove.decide import Decision, decide
from refinery.pipelines.corpus.remove.fates import Outcome, none_of
from refinery.pipelines.corpus.remove.find import IN_REMOVALS, Find, FindJob, find_tasks, read_found, save_request
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.corpus.remove.publish import Result, publish_version
from refinery.pipelines.corpus.remove.reinstate import Allowed, reinstate
from refinery.pipelines.corpus.remove.request import LICENCE, Request, where_rule
from refinery.pipelines.corpus.remove.rewrite import Rewrite, RewriteJob, save_change
from refinery.pipelines.corpus.remove.shards import Changes, shard_changes
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.published.placement import read_plan
from refinery.pipelines.recipe.writers import know_writer_of
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.job.task_list import write_task_list
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.filter.decontaminate import DecontaminateParams, benchmark_files

SCHEME = "takedown/3"  # what decides the result beside the request: any change of an answer changes the name


@dataclass(frozen=True)
class Options:
    """copies: what becomes of what has the text of a document that goes, or stands for one: "remove" or "keep".
    reinstate: whether duplicates of what goes may take its place. decontaminate: benchmarks no text may hold."""

    copies: str
    reinstate: bool = True
    decontaminate: DecontaminateParams | None = None

    def plain(self) -> dict[str, Any]:
        """What decides the answer."""
        found: dict[str, Any] = {"copies": self.copies, "reinstate": self.reinstate}
        if self.decontaminate is not None:
            from refinery.pipelines.run.fingerprint import file_digest

            found["decontaminate"] = self.decontaminate.plain()
            found["files"] = [[path, file_digest(path)] for path in benchmark_files(self.decontaminate)]
        return found


def refuse_unfit(manifest: Manifest) -> None:
    """Raises RefineError for a corpus of texts whose shards cannot be written again: a takedown puts documents where a
    hash of their ids says. JSON Lines keep the spelling of fields that typed columns only have the values of."""
    plan = read_plan(manifest.recipe)
    what = "a corpus that is in input order" if plan and plan.by_input else ""
    is_spelt = manifest.kept and not manifest.written.has_text_column
    what = what or ("JSON Lines with typed columns for fields of records" if is_spelt else "")
    if what:
        raise RefineError(
            f"{manifest.name!r:.100}: {what}, and `refinery remove` does not write such shards again; run the recipe "
            "again with `opt_out` or `keep` for these documents"
        )


@dataclass
class Foreseen:
    """What a takedown comes to, before anything is written. found: rows of FOUND_SCHEMA, with the matched texts."""

    found: pa.Table
    decision: Decision
    outcome: Outcome
    changes: Changes


@dataclass
class TakedownRun:
    """One corpus, one request, one new prefix. `run()` brings it to its manifest, from wherever it stands. where: a
    rule over the columns of the corpus, which is then part of the request, "" for none."""

    prefix: str
    output: str
    request: Request
    options: Options
    runner: Runner
    work: str = ""  # of the corpus, "" for PREFIX/work
    recipe: str = ""  # the corpus' own, needed where it has stages of its own
    say: Callable[[str], None] = print
    where: str = ""
    corpus: SourceCorpus = field(init=False)
    facts: CorpusFacts = field(init=False)

    def __post_init__(self) -> None:
        self.corpus = open_corpus(self.prefix)
        if not self.corpus.manifest.has_tokens:
            if not self.corpus.manifest.written.has_texts:
                raise NoTexts(self.corpus.root)
            know_writer_of(self.recipe)
            refuse_unfit(self.corpus.manifest)
        self.facts = corpus_facts(self.corpus.root, self.corpus.manifest)
        _check(self.corpus.manifest, self.request)
        if self.where:
            self.request = replace(self.request, where=where_rule(self.where, self.corpus.schema))
        identity = {
            "scheme": SCHEME,
            "previous": self.corpus.sha256,
            "request": self.request.plain(),
            "options": self.options.plain(),
        }
        self.identity, self.fingerprint = identity, digest(identity)

    @property
    def manifest(self) -> Manifest:
        return self.corpus.manifest

    def run(self) -> Manifest:
        """Returns the new manifest. Raises RefineError for a place that holds something else, FormatError and
        CorruptShard for a corpus that is damaged, and whatever a job raises."""
        place = self._place(self.output)
        done = place.finished()
        if done is None:
            place.claim()
            with place.at_work():
                done = place.finished() or self._publish(place)
        else:
            self.say(f"{self.output} is complete already; nothing to do")
        place.tidy()
        return done

    def foresee(self) -> Foreseen:
        """What `run` would do. Nothing is written but in a temporary folder."""
        with TemporaryDirectory(prefix="refinery-takedown-") as folder:
            place = self._place(folder)
            place.claim()
            return self._foresee(place)

    def _place(self, output: str) -> Place:
        return Place(output, self.identity, self.runner, self.manifest.name, self.say, before=self.corpus.root)

    def _foresee(self, place: Place) -> Foreseen:
        found = self._find(place)
        decision = decide(self.corpus.store, self.manifest, found, self.options.copies)
        outcome = self._reinstate(decision, place)
        changes = shard_changes(self.corpus.store, self.manifest, decision, outcome)
        return Foreseen(found, decision, outcome, changes)

    def _find(self, place: Place) -> pa.Table:
        """All that is asked for, wherever it is."""
        manifest = self.manifest
        job = FindJob(self.facts, place.work, self.options.decontaminate)
        tasks = find_tasks(manifest, removals=self.request.says(IN_REMOVALS))

        def build(pipeline: beam.Pipeline) -> None:
            save_request(place.work_store, self.request)
            pipeline | Find(write_task_list(place.work, "find", tasks), job)
            pipeline | WriteReport(place.work, "find/report.json", {"fingerprint": self.fingerprint})

        size = sum(shard.provenance.size for shard in manifest.shards)
        work = Work("find", steps=[Step("files", len(tasks))], bytes=size)
        return read_found(place.work_store, place.run_job("find", build, 0, work))

    def _reinstate(self, decision: Decision, place: Place) -> Outcome:
        if not self.options.reinstate:
            return none_of(decision.candidates, "nothing was to come back (--no-reinstate)")
        work = self.work or f"{self.corpus.root}/work"
        allowed = Allowed(self.request, self.manifest.columns, self.options.decontaminate, self.manifest.has_tokens)
        try:
            return reinstate(self.corpus, decision, allowed, place, work, self.recipe, self.runner)
        except FormatError as error:
            raise FormatError(
                f"{error}; name another place of the work files with --work, or pass --no-reinstate to skip this step"
            ) from None

    def _publish(self, place: Place) -> Manifest:
        foreseen = self._foresee(place)
        shards = self._rewrite(place, foreseen.changes, foreseen.outcome.counted)
        result = Result(foreseen.decision, foreseen.outcome, shards)
        return publish_version(place, self.corpus, self.request, self.identity, result, self.say, self.recipe)

    def _rewrite(self, place: Place, changes: Changes, counted: frozenset[str]) -> Sequence[Mapping[str, Any]]:
        if not changes:
            return []
        seed = int(self.manifest.recipe["shards"]["seed"])
        job = RewriteJob(self.facts, place.root, place.work, self.fingerprint, seed, self.manifest.packed, counted)

        def build(pipeline: beam.Pipeline) -> None:
            lines = [save_change(place.work_store, changes[name], seed) for name in sorted(changes)]
            pipeline | Rewrite(write_task_list(place.work, "rewrite", lines), job)
            pipeline | WriteReport(place.work, "rewrite/report.json", {"fingerprint": self.fingerprint})

        size = sum(change.before.content.size for change in changes.values() if change.before)
        work = Work("rewrite", steps=[Step("shards", len(changes))], bytes=size)
        shards: Sequence[Mapping[str, Any]] = place.run_job("rewrite", build, 1, work)["shards"]
        return shards


def _check(manifest: Manifest, request: Request) -> None:
    """Raise ValueError for a source or a column that the corpus does not have."""
    names = [source["name"] for source in manifest.recipe.get("sources", ())]
    for source in request.sources:
        if source not in names:
            raise ValueError(f"--source {source!r}: the corpus has {', '.join(map(repr, names))}")
    if request.licences and all(column.name != LICENCE for column in manifest.columns):
        raise ValueError(
            f"--licence: the provenance of this corpus has no column {LICENCE!r}; name --hosts, --urls or --source"
        )


__all__ = ["Foreseen", "Options", "TakedownRun"]
