"""Facts of runs that never were, for tests of the report: any counts, any names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from refinery.loader.format.indexed import DTYPE_CODES, dtype_for
from refinery.loader.format.manifest import Manifest, ShardEntry, StageEntry, TokenFacts, TokenizerEntry
from refinery.loader.format.written import OF_TOKENS
from refinery.pipelines.published.dropped import DroppedFile
from refinery.pipelines.published.statistics.published import Statistics
from refinery.pipelines.reports.run.facts import Facts, lane_stages, stage_counts
from refinery.pipelines.reports.run.samples import KeptText, Reject, Rejects

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&<!--]]>javascript:alert(3)"
    "\u202e\u2028\u0007\x1b[2J"
)


def row(stage: str, entered: int, kept: int, source: str = "crawl", **more: Any) -> dict[str, Any]:
    """A row of a funnel, 100 bytes a document. more: dropped, dead, found, scored as {name: documents or entry}."""
    counts = {
        outcome: {
            name: value if isinstance(value, (dict, list)) else {"documents": value, "bytes": 100 * value}
            for name, value in more.pop(outcome, {}).items()
        }
        for outcome in ("dropped", "dead", "found", "scored")
    }
    sizes = {"in": {"documents": entered, "bytes": 100 * entered}, "kept": {"documents": kept, "bytes": 100 * kept}}
    some = {outcome: entries for outcome, entries in counts.items() if entries or outcome in ("dropped", "dead")}
    return {"stage": stage, "source": source, **sizes, **some, **more}


FUNNEL = (
    row("read", 1000, 990, dropped={"record-type": 5}, dead={"BadGzip": 5}),
    row("extract", 990, 980, dropped={"empty": 10}),
    row("language", 980, 500, dropped={"language-not-allowed": 480}),
    row("toxicity", 500, 499, dropped={"toxic-density": 1}, scored={"toxicity": [[0.0, 400], [1.0, 90], [2.0, 10]]}),
    row("encode", 499, 499),
)


def made_manifest(funnel: Sequence[Mapping[str, Any]], name: str = "made") -> Manifest:
    """A manifest with that funnel and without files."""
    last = [entry["kept"] for entry in funnel if entry["stage"] == funnel[-1]["stage"]]
    documents, size = (sum(entry[unit] for entry in last) for unit in ("documents", "bytes"))
    dtype = dtype_for(1000)
    return Manifest(
        name=name,
        lane="web",
        stages=tuple(StageEntry(stage, "clean", 1) for stage in dict.fromkeys(entry["stage"] for entry in funnel)),
        columns=(),
        fingerprint="0" * 64,
        written=OF_TOKENS,
        token_facts=TokenFacts(
            dtype.name, DTYPE_CODES[dtype], TokenizerEntry("tokenizer/tokenizer.json", 1000, 1, None)
        ),
        shards=(shard("train", documents, size // 4),),
        files=(),
        totals={"documents": documents, "tokens": size // 4, "bytes": size},
        funnel=tuple(funnel),
        recipe={"name": name},
        versions={"refinery": "0.1.0"},
    )


def shard(split: str, documents: int, tokens: int) -> ShardEntry:
    none: Any = None
    return ShardEntry(split, "web", 0, 1, documents, tokens, (none, none), none)


def made_facts(funnel: Sequence[Mapping[str, Any]] = FUNNEL, **more: Any) -> Facts:
    """Facts with that funnel. more: fields of Facts."""
    seconds = more.pop("seconds", {"read": 1.0, "extract": 5.0, "toxicity": 2.0, "signatures": 1.0})
    facts = Facts(
        where="out/made",
        manifest=made_manifest(funnel),
        run={"inputs": [{"source": "crawl", "path": "a.warc.gz", "size": 10_000}]},
        statistics=None,
        seconds=seconds,
        price=0.05,
        declared={stage.name: stage for stage in lane_stages("web")},
        stages=stage_counts(funnel, seconds),
        rejects=Rejects({}, {}, 1, 1),
        dead={},
        kept=(),
    )
    return replace(facts, **more)


def distribution(bins: Sequence[tuple[float, float, int]]) -> dict[str, Any]:
    documents = sum(each[2] for each in bins)
    middle = [bins[len(bins) // 2][0]] * 5
    return {"documents": documents, "least": bins[0][0], "most": bins[-1][0], "quantiles": middle, "bins": list(bins)}


def total(documents: int, tokens: int | None = None) -> dict[str, Any]:
    return {"documents": documents, "bytes": 100 * documents, "tokens": tokens}


def point(name: str, documents: int, word: str = "en", **more: Any) -> dict[str, Any]:
    """A point of statistics.json: one language, two hosts, one series, one artefact."""
    tokens = documents * 25 if name == "published" else None
    values = [{"value": word, **total(documents, tokens)}]
    half = documents // 2
    return {
        "name": name,
        "meaning": f"of {name}",
        "phase": "clean",
        "after": "extract",
        "collected": True,
        "total": total(documents, tokens),
        "categories": [
            {"name": "language", "meaning": "code", "values": values, "other": total(0, tokens and 0), "distinct": 2}
        ],
        "series": [
            {
                "name": "text-bytes",
                "meaning": "UTF-8 bytes of the text",
                "unit": "bytes",
                "sources": [],
                "all": distribution([(64.0, 80.0, half), (1024.0, 1280.0, documents - half)]),
            }
        ],
        "hosts": {
            "without_host": total(0),
            "distinct": 2,
            "distinct_low": 2,
            "distinct_high": 2,
            "exact": True,
            "documents_error": 0,
            "bytes_error": 0,
            "confidence": 1.0,
            "sampled": 0,
            "top": [
                {"host": f"{word}.example", "documents": documents - half, "bytes": 1},
                {"host": f"{word}.example.org", "documents": half, "bytes": 1},
            ],
        },
        "artefacts": [{"name": "markup", "meaning": "a tag: <div>", "documents": 3, "bytes": 3, "sources": []}],
        **more,
    }


def made_statistics(points: Sequence[Mapping[str, Any]] = (), p_value: float = 0.5, word: str = "en") -> Statistics:
    """Statistics with those points, one cluster and one test of the shards."""
    test = {"category": word, "documents": 499, "statistic": 1.5, "degrees_of_freedom": 3, "p_value": p_value}
    sizes = distribution([(64.0, 80.0, 2)])
    shards = {"shards": 2, "tested": 2, "tests": [test], "documents": sizes, "tokens": sizes}
    some = points or [point("extracted", 980, word), point("final", 499, word), point("published", 499, word)]
    clusters = [{"scope": "near-duplicate", "documents": 40, "components": 10, "largest": 9}]
    data = {"points": some, "clusters": clusters, "shards": shards}
    return Statistics.model_validate(data, strict=False)


def made_dropped(stage: str = "toxicity", reason: str = "toxic-density", word: str = "en") -> DroppedFile:
    """dropped.json with one reason, one category and one score, 30 documents each."""
    measured = [{"name": word, "value": 1.5, "limit": 1.0}, {"name": "language", "value": word, "limit": None}]
    document = {
        "hash": "0" * 16,
        "source": word,
        "url": word,
        "origin": f"{word}@1",
        "size": 9,
        "found": word,
        "values": measured,
    }
    values = [{"value": word, "documents": 30, "bytes": 900}]
    data = {
        "phases": ["clean", "shards"],
        "reasons": [{"stage": stage, "reason": reason, "documents": [document]}],
        "categories": [{"stage": stage, "name": "language", "values": values, "other": None}],
        "scores": [{"stage": stage, "name": word, "limits": [1.0], "bins": [(1.0, 1.0625, 10), (2.0, 2.125, 20)]}],
    }
    return DroppedFile.model_validate(data, strict=False)


def hostile_facts() -> Facts:
    """Everything that comes from outside says the worst."""
    funnel = (
        row("read", 100, 90, HOSTILE, dropped={HOSTILE: 5}, dead={HOSTILE: 5}),
        row(HOSTILE, 90, 90, HOSTILE, found={HOSTILE: {"documents": 1, "bytes": 1, "items": 1}}),
        row("encode", 90, 90, HOSTILE, scored={HOSTILE: [[0.5, 40], [1.5, 50]]}),
    )
    key = ("read", HOSTILE)
    reject = Reject(HOSTILE, "javascript:alert(1)//" + HOSTILE, HOSTILE, HOSTILE * 3, HOSTILE)
    hostile = HOSTILE[:90]
    statistics = made_statistics(
        [point(name, 90, hostile) for name in ("extracted", "final", "published")], 1e-9, hostile
    )
    return replace(
        made_facts(funnel, statistics=statistics, seconds={HOSTILE: 3.0, "read": 1.0}),
        where=HOSTILE,
        manifest=replace(made_manifest(funnel, HOSTILE), recipe={"name": HOSTILE}, versions={HOSTILE: HOSTILE}),
        run={"inputs": [{"source": HOSTILE, "path": HOSTILE, "size": 1}], "environment": {HOSTILE: [HOSTILE]}},
        rejects=Rejects({key: [reject]}, {key: 1}, 1, 1),
        dead={key: [HOSTILE]},
        kept=[KeptText(HOSTILE, HOSTILE, 5, 2, HOSTILE, {HOSTILE: HOSTILE})],
        missing=[HOSTILE],
        dropped=made_dropped(HOSTILE[:90], HOSTILE[:90], hostile),
    )
