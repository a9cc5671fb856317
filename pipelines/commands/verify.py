"""Check a published corpus completely, and name everything that is wrong with it.

Every byte of every listed file is read once, every token is checked, and a sample of the documents is decoded. Checks
are generators of failures, so that a broken file does not hide failures of others.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.funnel import check_bytes
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    MANIFEST,
    RUN,
    SUFFIXES,
    Manifest,
    ShardEntry,
    check_funnel,
    check_version,
    dtype_for,
    read_manifest,
    seal,
    shard_name,
    unseal,
)
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.checks.addresses import check_addresses
from refinery.pipelines.checks.against import check_against
from refinery.pipelines.checks.file_checks import check_file, collect, verdict_lines
from refinery.pipelines.checks.identity import check_identity
from refinery.pipelines.checks.placement import Plan, read_plan
from refinery.pipelines.checks.takedowns import check_takedowns, takedown_lines
from refinery.pipelines.checks.texts import check_text, notes_text_ids
from refinery.pipelines.progress.work import Work
from refinery.pipelines.run.packed_counts import packed_line
from refinery.pipelines.verify.other_files import check_others, check_work
from refinery.pipelines.verify.packed_rows import check_packed
from refinery.pipelines.verify.removals import RemovalFacts, check_removals
from refinery.pipelines.verify.shard import ShardFacts, check_shard
from refinery.transforms.core.document import hash64
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer import Tokenizer

THREADS = 2  # hashing releases the GIL; more threads only help where storage is faster


@dataclass
class Report:
    """The result of verify. failures: each names the file, what was found and what was expected."""

    prefix: str
    failures: list[str] = field(default_factory=list)
    shards: int = 0
    files: int = 0
    bytes: int = 0
    documents: int = 0
    tokens: int = 0
    decoded: int = 0
    packed: str = ""  # what its packed rows are, in a line
    removals: int = 0
    dropped_later: int = 0
    takedowns: list[str] = field(default_factory=list)  # what was taken out, a line each
    seconds: float = 0.0

    def summary_lines(self) -> list[str]:
        """For the terminal: what was read, one line per failure, and the verdict."""
        rate = self.bytes / 1e6 / self.seconds if self.seconds else 0.0
        lines = [
            f"{self.prefix}: {self.documents:,} documents, {self.tokens:,} tokens in {self.shards:,} shards",
            f"read {self.files:,} files, {self.bytes / 1e6:,.1f} MB in {self.seconds:.1f} s ({rate:,.0f} MB/s), "
            f"decoded {self.decoded:,} documents",
        ]
        lines += [self.packed] if self.packed else []
        if self.removals:
            lost = f"; later stages dropped {self.dropped_later:,} of the documents kept instead"
            lines.append(f"{self.removals:,} removed by deduplication{lost if self.dropped_later else ''}")
        return [*lines, *self.takedowns, *verdict_lines(self.failures)]


def verify(
    prefix: str,
    *,
    samples: int = 8,
    decode: bool = True,
    load: Callable[[str], Tokenizer] = load_tokenizer,
    work: Work | None = None,
    against: str = "",
) -> Report:
    """Check the corpus at `prefix` (a local folder or gs://bucket/prefix). Never raises for what it finds there.

    samples: documents decoded per shard, chosen by hash. decode: False leaves decoding out. load: loads a tokenizer
    from the path of its file. work: learns what there is to read. against: the version before a takedown. Cost: one
    read of every file; memory is a few chunks of 8 MiB, the index of two shards, 24 bytes per document of the corpus
    and about 120 per removed one.
    """
    start = time.perf_counter()
    report = Report(prefix)
    report.failures += collect(prefix, _check_corpus(report, samples if decode else 0, load, work or Work(), against))
    report.seconds = time.perf_counter() - start
    return report


def _check_corpus(
    report: Report, samples: int, load: Callable[[str], Tokenizer], work: Work, against: str
) -> Iterator[str]:
    try:
        store = open_store(report.prefix)
        manifest = read_manifest(store)
    except ValueError as error:  # FormatError, or an unsupported kind of address
        yield str(error)
        return
    report.shards, report.packed = len(manifest.shards), packed_line(manifest)
    work.expect(sum(entry.size for entry in manifest.all_files))
    with ThreadPoolExecutor(THREADS) as pool:
        yield from collect(MANIFEST, _check_manifest(manifest))
        yield from collect(RUN, _check_run(store, manifest))
        plan = read_plan(manifest.recipe)
        if plan is None:
            yield (
                f"{MANIFEST}: recipe: shards.seed, shards.validation and sources with names expected; without them "
                "order, place and sources of documents cannot be checked"
            )

        def check_other(entry: Any) -> list[str]:
            return collect(entry.path, check_file(store, entry))

        damaged = set()
        for entry, failures in zip(manifest.files, pool.map(check_other, manifest.files), strict=True):
            yield from failures
            if failures:
                damaged.add(entry.path)

        with _tokenizer(store, manifest, load, samples > 0, damaged) as (tokenizer, failures):
            yield from failures
            lock = threading.Lock()
            read_back = partial(check_text, tokenizer, lock) if tokenizer else None
            has_ids = notes_text_ids(manifest)

            def check(facts: ShardFacts) -> list[str]:
                rows = sample_rows(manifest.fingerprint, facts.shard.bin.path, facts.shard.documents, samples)
                found = check_shard(store, manifest, facts, plan, rows, read_back, has_ids)
                failures = collect(facts.shard.bin.path, found)
                digests, facts.digests = facts.digests, None  # not kept for the other shards
                sources, sample = domain_sources(plan, facts.shard), (rows, tokenizer, lock)
                packed = check_packed(store, manifest, facts.shard, facts.ids, digests, sources, facts.sizes, *sample)
                return failures + collect(f"packed rows of {facts.shard.bin.path}", packed)

            every = [ShardFacts(shard) for shard in manifest.shards]
            for failures in pool.map(check, every):
                yield from failures

        if manifest.recipe.get("exact_dup", True):  # a recipe may keep copies on purpose
            yield from collect("ids", _check_ids(every))
        addresses = [(facts.shard.provenance.path, facts.addresses) for facts in every if facts.addresses is not None]
        yield from collect("addresses", check_addresses(addresses))
        yield from collect("totals", _check_totals(manifest, every))
        yield from collect("targets", _check_targets(manifest, every) if plan else ())
        yield from collect("funnel", _check_funnel(manifest, plan))
        removals = RemovalFacts()
        later = [stage.name for stage in manifest.stages if stage.phase == "shards"]
        yield from collect("removals/", check_removals(store, manifest, damaged, every, later, removals))
        yield from check_others(store, manifest, damaged)
        yield from collect("takedowns/", check_takedowns(store, manifest, damaged))
        if against:
            yield from collect(against, check_against(store, manifest, against))
        report.takedowns = takedown_lines(manifest, against)
        yield from collect("work/", check_work(store, pool))
    report.files = 1 + sum(1 for _ in manifest.all_files)
    report.bytes = sum(entry.size for entry in manifest.all_files)
    report.documents = sum(facts.documents for facts in every)
    report.tokens = sum(facts.tokens for facts in every)
    report.decoded = sum(facts.decoded for facts in every)
    report.removals, report.dropped_later = removals.rows, removals.unknown


def domain_sources(plan: Plan | None, shard: ShardEntry) -> set[str] | None:
    """Sources whose documents a shard may have."""
    return {name for name, domain in plan.domains.items() if domain == shard.domain} if plan else None


def _check_manifest(manifest: Manifest) -> Iterator[str]:
    """The manifest is consistent: dtype, special ids, names, one set of shards for each split and domain.

    A set may have gaps, where no document belongs. That no shard with documents is missing is seen by their sums.
    """
    tokenizer = manifest.tokenizer
    if not 1 <= tokenizer.vocab_size <= 2**31:
        yield f"{MANIFEST}: vocab_size is {tokenizer.vocab_size}, 1 to {2**31} expected"
    else:
        dtype = dtype_for(tokenizer.vocab_size)
        if (manifest.dtype, manifest.dtype_code) != (dtype.name, DTYPE_CODES[dtype]):
            yield (
                f"{MANIFEST}: dtype {manifest.dtype} (code {manifest.dtype_code}) found, {dtype.name} (code "
                f"{DTYPE_CODES[dtype]}) expected for a vocabulary of {tokenizer.vocab_size}"
            )
    for name, token in (("bos_id", tokenizer.bos_id), ("eos_id", tokenizer.eos_id)):
        if token is not None and token >= tokenizer.vocab_size:
            yield f"{MANIFEST}: {name} is {token}, less than the vocabulary's {tokenizer.vocab_size} expected"
    paths = Counter(entry.path for entry in manifest.all_files)
    yield from (f"{path}: listed {n} times in {MANIFEST}, once expected" for path, n in paths.items() if n > 1)
    yield from (f"{path}: not listed in {MANIFEST}" for path in (RUN, tokenizer.path) if path not in paths)

    sets: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for shard in manifest.shards:
        sets[shard.split, shard.domain].append(shard)
        try:
            name = shard_name(shard.split, shard.domain, shard.index, shard.count)
        except ValueError as error:
            yield f"{MANIFEST}: shard {shard.bin.path}: {error}"
            continue
        for entry, suffix in zip(shard.files, SUFFIXES.values(), strict=True):
            if entry.path != name + suffix:
                yield f"{MANIFEST}: shard file {entry.path} found, {name + suffix} expected"
    for (split, domain), shards in sets.items():
        counts = sorted({shard.count for shard in shards})
        indices = Counter(shard.index for shard in shards)
        if len(counts) > 1:
            yield f"{split}/{domain}: shards of sets of {counts} found, one set expected"
        yield from (f"{split}/{domain}: shard {i} is listed {n} times" for i, n in indices.items() if n > 1)


def _check_run(store: Store, manifest: Manifest) -> Iterator[str]:
    """_run.json belongs to the same run as the manifest."""
    try:
        payload = unseal(store.read(RUN), RUN)
        check_version(payload, RUN)
    except FileNotFoundError:
        return  # reported with the other listed files, or as not listed
    except FormatError as error:
        yield str(error)
        return
    if payload.get("fingerprint") != manifest.fingerprint:
        yield (
            f"{RUN}: fingerprint {payload.get('fingerprint')!r} found, {manifest.fingerprint!r} expected: "
            f"{MANIFEST} is from another run"
        )
    yield from check_identity(payload)
    phases = payload.get("phases")
    last = phases.get("shards") if isinstance(phases, dict) else None
    if last != manifest.fingerprint:
        yield f"{RUN}: phases.shards is {last!r}, the fingerprint {manifest.fingerprint!r} expected"
    if payload.get("name") != manifest.name:
        yield f"{RUN}: name {payload.get('name')!r} found, {manifest.name!r} expected from {MANIFEST}"
    recipe, expected = payload.get("recipe"), dict(manifest.recipe)
    if seal({"recipe": recipe}) != seal({"recipe": expected}):  # == treats 1, 1.0 and true as equal
        theirs = recipe if isinstance(recipe, dict) else {}
        absent = object()
        keys = [k for k in sorted({*theirs, *expected}) if theirs.get(k, absent) != expected.get(k, absent)]
        yield f"{RUN}: its recipe is not that of {MANIFEST}; they differ in: {', '.join(keys) or 'types'}"


def _check_ids(every: list[ShardFacts]) -> Iterator[str]:
    """No document twice. Cost: a sort of 8 bytes per document, in addition to the 16 of the ids."""
    known = [facts for facts in every if facts.ids is not None and len(facts.ids)]
    if not known:
        return
    ids = [facts.ids for facts in known if facts.ids is not None]
    halves = np.concatenate([part[:, 0] for part in ids])
    halves.sort()
    repeated = np.unique(halves[1:][halves[1:] == halves[:-1]])
    del halves
    seen: dict[bytes, str] = {}
    again, example = 0, ""
    for facts, part in zip(known, ids, strict=True) if len(repeated) else ():
        place = np.minimum(np.searchsorted(repeated, part[:, 0]), len(repeated) - 1)
        for row in np.flatnonzero(repeated[place] == part[:, 0]).tolist():
            id_, where = part[row].tobytes(), f"{facts.shard.provenance.path} row {row}"
            first = seen.setdefault(id_, where)
            if first is not where:
                again += 1
                example = example or f"{id_.hex()} is in {first} and in {where}"
    if again:
        yield f"ids: {again} documents have the id of another; {example}"


def _check_totals(manifest: Manifest, every: list[ShardFacts]) -> Iterator[str]:
    sums = {"documents": sum(s.documents for s in manifest.shards), "tokens": sum(s.tokens for s in manifest.shards)}
    sizes = [facts.text_bytes for facts in every if facts.text_bytes is not None]
    if len(sizes) == len(every):  # a shard without readable provenance is reported already
        sums["bytes"] = sum(sizes)
    for key, found in sums.items():
        if manifest.totals[key] != found:
            yield f"{MANIFEST}: totals.{key} is {manifest.totals[key]}, {found} expected from the shards"


def _check_targets(manifest: Manifest, every: list[ShardFacts]) -> Iterator[str]:
    """No source has more tokens than its target. A shard whose provenance is unreadable is reported already."""
    tokens: Counter[str] = Counter()
    for facts in every:
        tokens.update(facts.sources or {})
    for source in manifest.recipe["sources"]:
        target = source.get("target")
        if target is not None and (found := tokens[source["name"]]) > target:
            yield f"source {source['name']}: {found} tokens found, at most its target of {target} expected"


def _check_funnel(manifest: Manifest, plan: Plan | None) -> Iterator[str]:
    yield from (f"{MANIFEST}: funnel: {problem}" for problem in check_funnel(manifest.funnel))
    yield from (f"{MANIFEST}: funnel: {problem}" for problem in check_bytes(manifest.funnel))
    if not manifest.funnel:
        yield f"{MANIFEST}: funnel: empty, at least one stage expected"
        return
    stages = list(dict.fromkeys(entry["stage"] for entry in manifest.funnel))
    for unit in ("documents", "bytes"):
        kept = sum(entry["kept"][unit] for entry in manifest.funnel if entry["stage"] == stages[-1])
        if kept != manifest.totals[unit]:
            yield (
                f"{MANIFEST}: funnel: the last stage, {stages[-1]!r}, kept {kept} {unit}, "
                f"{manifest.totals[unit]} expected from totals"
            )
    known = [stage.name for stage in manifest.stages]
    if not known or stages != [name for name in known if name in stages] or stages[0] != known[0]:
        first = known[0] if known else "a stage"
        yield f"{MANIFEST}: funnel: {stages} found, those of {known} in this order, {first!r} first, expected"
    if not known:
        return
    if manifest.totals["documents"] and stages[-1] != known[-1]:
        yield f"{MANIFEST}: funnel: {stages[-1]!r} is the last stage, {known[-1]!r} expected"
    if plan:
        read = {entry["source"] for entry in manifest.funnel if entry["stage"] == known[0]}
        yield from (
            f"{MANIFEST}: funnel: source {source!r} of the recipe was never read"
            for source in sorted(plan.domains.keys() - read)
        )
        strange = {entry["source"] for entry in manifest.funnel} - plan.domains.keys()
        yield from (f"{MANIFEST}: funnel: source {source!r} is not in the recipe" for source in sorted(strange))


def sample_rows(fingerprint: str, path: str, documents: int, samples: int) -> list[int]:
    """Up to `samples` rows of a shard, in order and deterministic."""
    if documents <= samples:
        return list(range(documents))
    return sorted({hash64("verify", fingerprint, path, k) % documents for k in range(samples)})


@contextmanager
def _tokenizer(
    store: Store, manifest: Manifest, load: Callable[[str], Tokenizer], wanted: bool, damaged: set[str]
) -> Iterator[tuple[Tokenizer | None, list[str]]]:
    """The corpus' own tokenizer, or None and why. Damaged files, which have failures already, are not loaded."""
    path = manifest.tokenizer.path
    folder = path.rpartition("/")[0]
    names = [entry.path for entry in manifest.files if entry.path == path or entry.path.startswith(f"{folder}/")]
    if not wanted or path not in names or damaged.intersection(names):
        yield None, []
        return
    with TemporaryDirectory(prefix="refinery-verify-") as scratch:
        loaded: list[Tokenizer] = []

        def check() -> Iterator[str]:
            for name in names:
                copy = Path(scratch, name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(store.read(name))
            loaded.append(load(str(Path(scratch, path))))
            if loaded[0].vocab_size != manifest.tokenizer.vocab_size:
                yield (
                    f"{path}: a vocabulary of {loaded[0].vocab_size} found, "
                    f"{manifest.tokenizer.vocab_size} expected from {MANIFEST}"
                )

        failures = collect(path, check())
        yield (loaded[0] if loaded else None), failures
