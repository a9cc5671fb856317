"""`refinery refine`: the three phases in order, skipping what is complete, and the manifest at the end.

Every step can be repeated: names are exclusive, reports are sealed, and what a killed run left behind is either claimed
by a report or removed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from loader.format import MANIFEST, Manifest, read_manifest, unseal
from loader.indexed import dtype_for
from loader.storage import Store, open_store
from pipelines import web
from pipelines.against import load_against
from pipelines.checks import check_models
from pipelines.fingerprint import describe_inputs, phase_fingerprints
from pipelines.funnel import build_funnel, check_budget, funnel_table
from pipelines.phases import Phase, finish_phase, merge_reports, read_phase, read_waves, remove_orphans, remove_work
from pipelines.prefix import RefineError, claim, describe_run, location, take_over, work_places
from pipelines.publish import publish_corpus
from pipelines.recipe import Recipe
from pipelines.runners import Runner
from transforms.read import ReadTask, plan_sources
from transforms.read_survivors import PartPair
from transforms.shuffle import shard_counts
from transforms.signatures import SIGNATURE_SCHEME
from transforms.write_removals import count_files

DOCUMENTS_PER_PARTITION = 250_000  # rows of one radix partition of phase 2; about 40 MB a band


@dataclass
class Refinement:
    """One recipe on one prefix. `run()` brings the prefix to its manifest, from wherever it stands.

    prefix, work: locations (local or gs://). reuse: another prefix whose finished phases are taken over where their
    fingerprint is the same. say: receives lines for the user.
    """

    recipe: Recipe
    prefix: str
    runner: Runner
    work: str = ""
    reuse: str = ""
    discard_work: bool = False
    say: Callable[[str], None] = print

    def __post_init__(self) -> None:
        self.work = self.work or f"{self.prefix.rstrip('/')}/work"
        inside = f"{location(self.prefix)}/".startswith(f"{location(self.work)}/")
        if inside:
            raise RefineError(
                f"--work {self.work}: the corpus would lie in its own work location; choose another --work"
            )

    def run(self) -> Manifest:
        """Returns the manifest.

        Raises RecipeError and ValueError for what is wrong with the recipe or its inputs (before anything runs),
        RefineError for a prefix that belongs to something else, a spent failure budget or counts that do not
        reconcile, and whatever a job raises.
        """
        self.tokenizer = check_models(self.recipe)
        self.tasks = plan_sources(self.recipe.sources)
        self.inputs = describe_inputs(self.tasks)
        self.fingerprints = phase_fingerprints(self.recipe, self.inputs)
        self.store: Store = open_store(self.prefix)
        self.work_store: Store = open_store(self.work)
        self.against = None if self._is_deduplicated() else load_against(self.recipe)
        if self._claim():
            self.say(f"{self.prefix} is complete already; nothing to do")
            return read_manifest(self.store)
        if self.reuse:
            take_over(self.work, self.reuse, self.fingerprints, self.say)
        clean = self._phase("clean", self._clean)
        dedup = self._phase("dedup", lambda: self._dedup(clean))
        shards = self._phase("shards", lambda: self._shards(clean, dedup))
        return self._publish([clean, dedup, shards])

    def _is_deduplicated(self) -> bool:
        """Whether phase 2 is complete, here or in what is reused: then nobody needs the signatures of `against`."""
        places = [self.work, *work_places(self.reuse)]
        return self.store.size(MANIFEST) is not None or any(
            read_phase(place, "dedup", self.fingerprints["dedup"]) is not None for place in places
        )

    def _claim(self) -> bool:
        """Make the prefix, and a work location outside it, ours. True when the corpus is complete."""
        identity = describe_run(self.recipe, self.inputs, self.fingerprints)
        advice = f"Choose another --output; with --reuse {self.prefix} it takes over every phase that is the same."
        claim(self.store, identity, advice)
        if not location(self.work).startswith(f"{location(self.prefix)}/"):
            claim(self.work_store, identity, "Choose another --work.")
        return self.store.size(MANIFEST) is not None

    def _phase(self, name: str, run: Callable[[], Mapping[str, Any]]) -> Phase:
        phase = read_phase(self.work, name, self.fingerprints[name])
        if phase is None and self.work_store.size(f"{name}.json") is not None:
            raise RefineError(
                f"{self.work_store.url(f'{name}.json')} is of another run; it does not belong here: remove it"
            )
        if phase is None:
            phase = finish_phase(self.work, name, self.fingerprints[name], run())
        else:
            self.say(f"{name}: complete already")
        self._check_budget(phase.report)
        return phase

    def _check_budget(self, report: Mapping[str, Any]) -> None:
        problems = check_budget(report["tallies"], self.recipe.failures.max_ratio, self.recipe.failures.grace)
        if problems:
            raise RefineError(
                "too many dead letters:\n  "
                + "\n  ".join(problems)
                + f"\nThey are listed in {self.work_store.url('dead_letters')}. Bear them: the same command with "
                "--set failures.max_ratio=… goes on where it stopped. Or mend the inputs and choose another --output."
            )

    # --- the phases ---------------------------------------------------------------------------------------------

    def _clean(self) -> Mapping[str, Any]:
        reports = read_waves(self.work_store, "clean")
        finished = {key for report in reports for key in report["tasks"]}
        todo = [task for task in self.tasks if task_key(task) not in finished]
        waves = cut_waves(todo, self.recipe.run.wave_bytes, self.recipe.run.wave_files)
        if reports:
            self.say(f"clean: {len(reports)} waves are done, {len(waves)} to go")
        first = max((report["number"] for report in reports), default=-1) + 1
        for number, wave in enumerate(waves, first):
            keys = sorted(task_key(task) for task in wave)
            name = f"clean/wave-{number:05d}.json"
            facts = {"tasks": keys}
            build = partial(web.clean, recipe=self.recipe, tasks=wave, work=self.work, report=name, facts=facts)
            self.runner.run(f"1/3 clean, wave {number + 1} of {first + len(waves)}", build, files=len(wave))
            reports.append(unseal(self.work_store.read(name), name))
            self._check_budget({"tallies": [tally for report in reports for tally in report["tallies"]]})
        report = merge_reports(reports)
        remove_orphans(self.work_store, report, ("documents", "signatures"))
        return report

    def _dedup(self, clean: Phase) -> Mapping[str, Any]:
        store = open_store(clean.root)
        recipe = self.recipe
        if not (recipe.exact_dup or recipe.near_dup or recipe.near_dup_in_source or recipe.line_dup):
            return {"tallies": [], "seconds": {}, "parts": {}, "survivors": self._undeduplicated(clean)}
        parts = [(store.url(part["path"]), part["rows"]) for part in clean.parts("signatures")]
        against = load_against(recipe) if self.against is None else self.against
        foreign = [part for corpus in against for part in corpus.parts]
        documents = sum(rows for _, rows in (*parts, *foreign))
        partitions = 1 << max(0, (documents // DOCUMENTS_PER_PARTITION).bit_length())
        name = "dedup/report.json"
        if self.work_store.size(name) is None:
            self.runner.run(
                "2/3 dedup", lambda p: web.dedup(p, self.recipe, parts, against, partitions, self.work, name, {})
            )
        report = unseal(self.work_store.read(name), name)
        for found in report["components"]:
            rounds = f", {found['rounds']} rounds of stars" if found["method"] == "stars" else ""
            self.say(
                f"{found['scope']}: {found['links']:,} links join {found['documents']:,} documents to "
                f"{found['components']:,} components, the largest of {found['largest']:,}{rounds}"
            )
        remove_orphans(self.work_store, report, ("verdicts",))
        return report

    def _undeduplicated(self, clean: Phase) -> dict[str, dict[str, int]]:
        """Documents and bytes per domain where deduplication is off: what the last stage of phase 1 kept."""
        totals: dict[str, dict[str, dict[str, int]]] = {}
        facts = self.recipe.source_facts()
        for row in self._funnel([clean]):
            domain = totals.setdefault(facts[row["source"]].domain, {})
            domain[row["source"]] = row["kept"]
        return {
            domain: {unit: sum(kept[unit] for kept in last.values()) for unit in ("documents", "bytes")}
            for domain, last in totals.items()
        }

    def _shards(self, clean: Phase, dedup: Phase) -> Mapping[str, Any]:
        verdicts = {part["path"].split("/")[-1]: part["path"] for part in dedup.parts("verdicts")}
        pairs = [
            PartPair(clean.root, part["path"], dedup.root, verdicts.get(part["path"].split("/")[-1], ""), group)
            for part in clean.parts("documents")
            for group in range(part["groups"])
        ]
        if verdicts and any(not pair.verdicts for pair in pairs):
            raise RefineError(f"{dedup.root}: a part of documents/ has no verdicts; remove dedup.json and run again")
        counts = shard_counts(dedup.report["survivors"], self.recipe.shards)
        removals = count_files(sum(t["documents"] for t in dedup.report["tallies"] if t["outcome"] == "dropped"))
        dtype = dtype_for(self.tokenizer.vocab_size).name
        name = "shards/report.json"
        if self.work_store.size(name) is None:
            self.runner.run(
                "3/3 shards",
                lambda p: web.shards(p, self.recipe, pairs, counts, removals, dtype, self.work, self.prefix, name, {}),
            )
        return unseal(self.work_store.read(name), name)

    # --- the end ------------------------------------------------------------------------------------------------

    def _funnel(self, phases: Sequence[Phase]) -> list[dict[str, Any]]:
        tallies = merge_reports([phase.report for phase in phases])["tallies"]
        return build_funnel(tallies, web.STAGES, [source.name for source in self.recipe.sources])

    def _publish(self, phases: Sequence[Phase]) -> Manifest:
        funnel = self._funnel(phases)
        merged = merge_reports([phase.report for phase in phases])
        manifest = publish_corpus(
            self.store,
            phases,
            self.recipe,
            self.tokenizer,
            self.fingerprints["shards"],
            funnel,
            {"refinery": version("refinery"), "beam": version("apache-beam"), "signatures": SIGNATURE_SCHEME},
        )
        remove_orphans(self.work_store, merged, ("dead_letters", "rejects"))
        self.store.sweep()
        self.work_store.sweep()
        for line in funnel_table(funnel, merged["seconds"], manifest.totals["tokens"]):
            self.say(line)
        if self.discard_work:
            remove_work(self.work_store)
        return manifest


def task_key(task: ReadTask) -> str:
    """How wave reports name a task."""
    return f"{task.source} {task.path} {task.part}/{task.parts}"


def cut_waves(tasks: Sequence[ReadTask], wave_bytes: int, wave_files: int) -> list[list[ReadTask]]:
    """Cut the tasks, in order, into waves of at most that many bytes and files (a larger file is a wave of its own)."""
    waves: list[list[ReadTask]] = []
    held = 0
    for task in tasks:
        size = task.size // max(1, task.parts)
        if not waves or held + size > wave_bytes or len(waves[-1]) >= wave_files:
            waves.append([])
            held = 0
        waves[-1].append(task)
        held += size
    return waves
