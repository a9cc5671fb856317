"""What a finished run says about a larger one: its stages' retentions, its speed, and its files as a sample.

Read are the manifest, `_run.json`, `removals/`, some columns of the provenance files, and the phases' small manifests.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.errors import NoTokens
from refinery.loader.format.indexed import DTYPES
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.removals import ID_BYTES, REFERENCE, URL_DUPLICATE
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.reports.plan.presets import STAGES
from refinery.pipelines.reports.plan.sample import Sample
from refinery.transforms.core.names import TARGET_STAGE

BATCH = 1 << 16  # rows that are in memory at once
REMOVED = ("id", "kept_id", "reason", "scope", "origin")


@dataclass(frozen=True)
class Measured:
    """A finished run. retentions: kept bytes over bytes that entered, of every stage. raw: bytes that the reader gave.

    stored: bytes of the input files, of which there are `files`. token_bytes: of a token in the shards. text: bytes of
    the kept texts. seconds: of work in all stages, 0 where the work location is gone. sample: None, with the reason in
    `why`, where the documents' origins do not name input files.
    """

    retentions: Mapping[str, float]
    raw: float
    stored: float
    files: int
    token_bytes: float
    tokens: float
    text: float
    seconds: float
    sample: Sample | None
    why: str


def measure(prefix: str, seconds: float = 0.0) -> Measured:
    """A run at `prefix`. seconds: of processor time that it took, 0 where that is not known. Memory: the removed
    documents' ids and origins, and a batch of the kept ones.

    Raises FormatError where there is no finished corpus or it is damaged, ValueError for one of which nothing can be
    learned: without documents, or held to a target of tokens.
    """
    corpus = Corpus(prefix)
    manifest, run = corpus.manifest, corpus.run
    if not manifest.has_tokens:
        raise NoTokens(prefix)
    if not manifest.totals["tokens"]:
        raise ValueError(f"{prefix}: the corpus has no tokens; nothing can be said about a larger one")
    stopped = [entry for entry in manifest.funnel if entry["stage"] == TARGET_STAGE and entry["dropped"]]
    if stopped:
        raise ValueError(f"{prefix}: the source {stopped[0]['source']} was held to its target; measure a run without")
    sizes: Counter[str] = Counter()
    for entry in run["inputs"]:
        sizes[str(entry["path"])] += int(entry["size"])
    sample, why = read_sample(corpus, sizes)
    raw = sum(entry["in"]["bytes"] for entry in manifest.funnel if entry["stage"] == manifest.stages[0].name)
    return Measured(
        retentions=_retentions(manifest),
        raw=float(raw),
        stored=float(sum(sizes.values())),
        files=len(sizes),
        token_bytes=float(DTYPES[manifest.dtype_code].itemsize),
        tokens=float(manifest.totals["tokens"]),
        text=float(manifest.totals["bytes"]),
        seconds=seconds,
        sample=sample,
        why=why,
    )


def _retentions(manifest: Manifest) -> dict[str, float]:
    """Of the lane's stages in its order, and of the run's own ones behind those they followed. 1 where none ran."""
    entered: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for entry in manifest.funnel:
        entered[entry["stage"]] += entry["in"]["bytes"]
        kept[entry["stage"]] += entry["kept"]["bytes"]
    order, last = list(STAGES), -1
    for stage in entered:
        if stage not in order:
            order.insert(last + 1, stage)
        last = order.index(stage)
    return {stage: kept[stage] / entered[stage] if entered[stage] else 1.0 for stage in order}


def read_sample(corpus: Corpus, sizes: Mapping[str, int]) -> tuple[Sample | None, str]:
    """(the input files as a sample, "") or (None, why not)."""
    number = {path: place for place, path in enumerate(sorted(sizes))}
    homes = _removed(corpus)
    weights, documents = np.zeros(len(number)), 0.0 if _deduplicated(corpus.manifest) else math.inf
    kept: dict[bytes, tuple[float, int]] = {}
    representatives = pa.array(list(homes), pa.binary(ID_BYTES))
    for ids, files, tokens in _kept_rows(corpus):
        names = files.dictionary.to_pylist()
        if strange := [name for name in names if name not in number]:
            return None, f"documents come from {strange[0]!r:.200}, which is not an input file of the run"
        places = np.array([number[name] for name in names], np.int64)[files.indices.to_numpy()]
        np.add.at(weights, places, tokens.to_numpy())
        documents += len(ids)
        if homes:
            wanted = pc.is_in(ids, value_set=representatives).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(wanted):
                kept[ids[row].as_py()] = float(tokens[row].as_py()), int(places[row])
    families = []
    for id_, paths in homes.items():
        if id_ in kept:  # else a later stage dropped it, and would have dropped its copies
            size, home = kept[id_]
            others = sorted({number[path] for path in paths if path in number} - {home})
            weights[others] += size
            documents += len(others)
            if others:
                families.append((size, [home, *others]))
    counts = np.array([sizes[path] for path in sorted(sizes)], np.float64)
    return Sample(counts, weights, documents, sorted(families, key=lambda f: (f[1], f[0]))), ""


def _deduplicated(manifest: Manifest) -> bool:
    return any(stage.phase == "dedup" for stage in manifest.stages)


def _removed(corpus: Corpus) -> dict[bytes, list[str]]:
    """Kept id -> input files of the documents removed in its favour.

    Removals in favour of another corpus' documents are left out: what is published does not grow with the run. Captures
    of one address go first, by address: their ids say nothing of other documents of the same text, so no way leads
    through them.
    """
    instead: dict[bytes, bytes] = {}
    rows: list[tuple[bytes, str]] = []
    for batch in corpus.removals(REMOVED):
        for id_, kept_id, reason, scope, origin in zip(*(batch[name].to_pylist() for name in REMOVED), strict=True):
            if not scope.startswith(REFERENCE):
                rows.append((kept_id, origin.rpartition("@")[0]))
                if id_ != kept_id and reason != URL_DUPLICATE:
                    instead.setdefault(id_, kept_id)
    homes: dict[bytes, list[str]] = {}
    for kept_id, path in rows:
        homes.setdefault(_end(kept_id, instead), []).append(path)
    return homes


def _end(id_: bytes, instead: dict[bytes, bytes]) -> bytes:
    """The document that stands for this one at the end of all stages of deduplication; shortens the way to it. Without
    exact deduplication two documents may have one id, and a way may lead back: then it ends at the smallest id."""
    way: dict[bytes, None] = {}
    while id_ in instead and id_ not in way:
        way[id_] = None
        id_ = instead[id_]
    end = min(way) if id_ in way else id_
    for step in way:
        if step != end:
            instead[step] = end
    instead.pop(end, None)
    return end


def _kept_rows(corpus: Corpus) -> Iterator[tuple[pa.Array, pa.DictionaryArray, pa.Array]]:
    """(ids, input files, token counts) of the corpus' documents, batch by batch."""
    for shard in corpus.entries():
        for batch in corpus.provenance(shard, ["id", "origin", "token_count"]):
            files = pc.replace_substring_regex(batch["origin"], r"@[^@]*$", "")
            yield batch["id"], files.dictionary_encode(), batch["token_count"]
