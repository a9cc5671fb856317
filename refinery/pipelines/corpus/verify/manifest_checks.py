"""Checks of the manifest and `_run.json`: that they are consistent, of one run, and have the sums of the shards."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.funnel import check_bytes
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    MANIFEST,
    RUN,
    Manifest,
    check_funnel,
    check_version,
    dtype_for,
    seal,
    shard_name,
    unseal,
)
from refinery.loader.format.shard_list import as_shards
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.identity import check_identity
from refinery.pipelines.published.placement import Plan
from refinery.pipelines.recipe.writers import find_writer
from refinery.pipelines.run.differences import TOKENIZED_FROM

Facts = Mapping[str, Any]  # of a shard: of its piece


def check_manifest(manifest: Manifest) -> Iterator[str]:
    """The manifest is consistent: what its writer states, names, one set of shards for each split and domain.

    A set may have gaps, where no document belongs. That no shard with documents is missing is seen by their sums.
    """
    listed = [RUN]
    if manifest.has_tokens:
        yield from _check_tokens(manifest)
        listed.append(manifest.tokenizer.path)
    else:
        try:
            find_writer(manifest)
        except FormatError as error:
            yield f"{error}; until then its texts are not checked"
    paths = Counter(entry.path for entry in manifest.all_files)
    yield from (f"{path}: listed {n} times in {MANIFEST}, once expected" for path, n in paths.items() if n > 1)
    yield from (f"{path}: not listed in {MANIFEST}" for path in listed if path not in paths)

    sets: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for shard in manifest.shards:
        sets[shard.split, shard.domain].append(shard)
        try:
            name = shard_name(shard.split, shard.domain, shard.index, shard.count)
        except ValueError as error:
            yield f"{MANIFEST}: shard {shard.written[0].path}: {error}"
            continue
        for entry, (_, suffix) in zip(shard.files, manifest.written.endings, strict=True):
            if entry.path != name + suffix:
                yield f"{MANIFEST}: shard file {entry.path} found, {name + suffix} expected"
    for (split, domain), shards in sets.items():
        counts = sorted({shard.count for shard in shards})
        indices = Counter(shard.index for shard in shards)
        if len(counts) > 1:
            yield f"{split}/{domain}: shards of sets of {counts} found, one set expected"
        yield from (f"{split}/{domain}: shard {i} is listed {n} times" for i, n in indices.items() if n > 1)


def _check_tokens(manifest: Manifest) -> Iterator[str]:
    """What the manifest states of tokens is consistent."""
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


def check_run(store: Store, manifest: Manifest) -> Iterator[str]:
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
    found, texts = payload.get(TOKENIZED_FROM), manifest.further.get(TOKENIZED_FROM)
    if found != texts:
        yield f"{RUN}: {TOKENIZED_FROM} is {found!r:.200}, {texts!r:.200} expected from {MANIFEST}"
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


def check_totals(manifest: Manifest, shards: Sequence[Facts]) -> Iterator[str]:
    runs = as_shards(manifest.shards).runs
    sums = {"documents": sum(run.documents for run in runs)}
    if manifest.has_tokens:
        sums["tokens"] = sum(run.tokens for run in runs)
    sizes = [facts["text_bytes"] for facts in shards if facts["text_bytes"] is not None]
    if len(sizes) == len(shards):  # a shard without readable provenance is reported already
        sums["bytes"] = sum(sizes)
    for key, found in sums.items():
        if manifest.totals[key] != found:
            yield f"{MANIFEST}: totals.{key} is {manifest.totals[key]}, {found} expected from the shards"


def check_targets(manifest: Manifest, shards: Sequence[Facts]) -> Iterator[str]:
    """No source has more tokens than its target. A shard whose provenance is unreadable is reported already."""
    tokens: Counter[str] = Counter()
    for facts in shards:
        tokens.update(facts["sources"] or {})
    for source in manifest.recipe["sources"]:
        target = source.get("target")
        if target is not None and (found := tokens[source["name"]]) > target:
            yield f"source {source['name']}: {found} tokens found, at most its target of {target} expected"


def check_manifest_funnel(manifest: Manifest, plan: Plan | None) -> Iterator[str]:
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
