"""What a finished run says of its documents is what its own files say; of older runs it says that it does not know."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import seal
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.statistics.published import STATISTICS, Point, Statistics
from refinery.transforms.core.address.host import host_of
from tests.corpus_factory import replace_manifest
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import command
from tests.plain_manifest import manifest_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def statistics_of(prefix: Path) -> Statistics:
    found = PublishedCorpus(str(prefix)).statistics()
    assert found is not None
    return found


def point_of(prefix: Path, name: str) -> Point:
    found = statistics_of(prefix).point(name)
    assert found is not None
    return found


def provenance(prefix: Path) -> list[dict[str, Any]]:
    """Every row, with "shard" and what is in `meta`."""
    paths = sorted(path for split in ("train", "validation") for path in (prefix / split).rglob("*.provenance.parquet"))
    rows = [{**row, "shard": path} for path in paths for row in pq.read_table(path).to_pylist()]
    return [{**json.loads(row["meta"]), **row} for row in rows]


def read_manifest(prefix: Path) -> dict[str, Any]:
    return manifest_of(prefix)


def test_the_published_point_is_what_provenance_says(corpus: Path) -> None:
    point, rows = point_of(corpus, "published"), provenance(corpus)
    assert point.total is not None and point.hosts is not None
    assert dict(point.total) == read_manifest(corpus)["totals"]
    for category in point.categories:
        counted = Counter(str(row[category.name]) for row in rows)
        tokens = Counter[str]()
        for row in rows:
            tokens[str(row[category.name])] += row["token_count"]
        assert {value.value: value.documents for value in category.values} == counted
        assert {value.value: value.tokens for value in category.values} == tokens
        assert category.other is None
    assert [category.name for category in point.categories] == ["source", "language"]
    names = {"text-bytes": "text_bytes", "token-count": "token_count"}
    for series in point.series:
        name = names.get(series.name, series.name)
        if name == "bytes-per-token":
            numbers = [row["text_bytes"] / row["token_count"] for row in rows]
        else:
            numbers = [row[name] for row in rows if row.get(name) is not None]
        assert series.all.documents == len(numbers) > 0
        assert series.all.least == pytest.approx(min(numbers)) and series.all.most == pytest.approx(max(numbers))
        for low, high, documents in series.all.bins:
            assert documents == sum(low <= number < high for number in numbers), series.name
    assert {"language_score", "quality", "copies", "toxicity"} <= {series.name for series in point.series}
    hosts = Counter(host_of(row["url"]) for row in rows)
    assert {row.host: row.documents for row in point.hosts.top} == hosts
    assert point.hosts.distinct == len(hosts) and point.hosts.exact


def test_every_point_is_what_the_funnel_says(corpus: Path) -> None:
    funnel = read_manifest(corpus)["funnel"]
    points = statistics_of(corpus).points
    assert [point.name for point in points] == ["extracted", "cleaned", "deduplicated", "final", "published"]
    for point in points:
        kept = {row["source"]: row["kept"] for row in funnel if row["stage"] == point.after}
        assert {value.value: value.documents for value in point.categories[0].values} == {
            source: entry["documents"] for source, entry in kept.items()
        }
        assert {value.value: value.bytes for value in point.categories[0].values} == {
            source: entry["bytes"] for source, entry in kept.items()
        }


def test_artefacts_that_rules_drop_are_gone_afterwards(corpus: Path) -> None:
    """The crawl has pages of code and of lines that repeat themselves, which heuristics drop."""
    before = {row.name: row.documents for row in point_of(corpus, "extracted").artefacts}
    after = {row.name: row.documents for row in point_of(corpus, "final").artefacts}
    assert before.keys() == after.keys()
    assert before["code-lines"] > 0 and before["repeated-lines"] > 0
    assert after["code-lines"] == after["repeated-lines"] == 0
    assert after["markup"] == 0  # <EMAIL> and its like stand for personal data


def test_clusters_and_shards(corpus: Path) -> None:
    statistics, rows = statistics_of(corpus), provenance(corpus)
    (near,) = statistics.clusters
    assert near.scope == "near-duplicates" and 2 <= near.largest <= near.documents
    assert statistics.shards is not None
    assert statistics.shards.shards == len(read_manifest(corpus)["shards"])
    assert statistics.shards.tested == len({row["shard"] for row in rows})
    assert {test.category for test in statistics.shards.tests} == {"source", "language", "length"}
    for test in statistics.shards.tests:
        assert test.documents == len(rows)
        assert 0 <= test.p_value <= 1


def test_an_older_phase_has_no_statistics_and_that_is_said(small: Path, tmp_path: Path) -> None:
    """Phase 1 of a run that did not measure is taken over, as a copy of the small corpus with a report without them."""
    old, new = tmp_path / "old", tmp_path / "new"
    run(*command(small, old))
    assert all(point.collected for point in statistics_of(old).points)
    report = json.loads((old / "work" / "clean.json").read_bytes())
    del report["statistics"], report["sha256"]
    (old / "work" / "clean.json").write_bytes(seal(report))
    run(*command(small, new, "--reuse", old))
    again = statistics_of(new)
    assert [point.name for point in again.points if not point.collected] == ["extracted", "cleaned"]
    assert again.point("published") == statistics_of(old).point("published")
    assert verify(str(new)).failures == []


def test_verify_sees_what_disagrees(small: Path, tmp_path: Path) -> None:
    def edit(change: Any) -> list[str]:
        """Failures after statistics.json was changed and the manifest sealed anew."""
        prefix = tmp_path / "edited"
        shutil.rmtree(prefix, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", prefix)
        statistics, manifest = json.loads((prefix / STATISTICS).read_bytes()), read_manifest(prefix)
        change(statistics, manifest)
        (prefix / STATISTICS).write_text(json.dumps(statistics))
        size, crc32c, sha256 = checksums(prefix / STATISTICS)
        for file in manifest["files"]:
            if file["path"] == STATISTICS:
                file |= {"size": size, "crc32c": crc32c, "sha256": sha256}
        replace_manifest(prefix, manifest)
        return verify(str(prefix)).failures

    def count_more(statistics: Any, manifest: Any) -> None:
        statistics["points"][4]["total"]["tokens"] += 1
        statistics["points"][4]["total"]["documents"] += 1
        statistics["points"][1]["categories"][0]["values"][0]["documents"] += 1

    def unlist(statistics: Any, manifest: Any) -> None:
        manifest["files"] = [file for file in manifest["files"] if file["path"] != STATISTICS]

    run(*command(small, tmp_path / "whole"))
    assert edit(lambda statistics, manifest: None) == []
    failures = edit(count_more)
    assert [text.startswith(f"{STATISTICS}: ") for text in failures] == [True] * 3
    for text, failure in zip(("documents of source 's' found", "encode kept", "tokens found"), failures, strict=True):
        assert text in failure
    (failure,) = edit(lambda statistics, manifest: statistics.pop("points"))
    assert "points: Field required" in failure
    (failure,) = edit(unlist)
    assert failure == "statistics.json: not in manifest.json"
