"""dropped.json of a run: of every reason as many documents as there are, at most 20, those with the smallest hashes."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import seal
from refinery.loader.storage.store import checksums
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.dropped import DROPPED, DroppedFile, dump_dropped, parse_dropped, read_dropped
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.reports.run.dropped_documents import HIDDEN, may_quote
from refinery.pipelines.reports.run.facts import lane_stages
from refinery.transforms.statistics.dropped import EXAMPLES, dropped_hash
from tests.corpus_factory import replace_manifest
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import command
from tests.plain_manifest import manifest_of
from tests.sampling import one_commit_in_four


def dropped_of(prefix: Path) -> DroppedFile:
    found = read_dropped(PublishedCorpus(str(prefix)))
    assert found is not None
    return found


def lost(prefix: Path) -> Counter[tuple[str, str]]:
    """Documents by stage and reason, of the funnel."""
    found: Counter[tuple[str, str]] = Counter()
    for row in manifest_of(prefix)["funnel"]:
        for reason, count in row["dropped"].items():
            found[row["stage"], reason] += count["documents"]
    return found


def test_every_reason_has_its_documents(corpus: Path) -> None:
    found, counted = dropped_of(corpus), lost(corpus)
    assert found.phases == ("clean", "shards")
    assert {(each.stage, each.reason): len(each.documents) for each in found.reasons} == {
        key: min(EXAMPLES, count) for key, count in counted.items()
    }
    assert max(counted.values()) > EXAMPLES
    for each in found.reasons:
        hashes = [document.hash for document in each.documents]
        assert hashes == sorted(set(hashes))


def test_removed_documents_are_those_with_the_smallest_hashes(corpus: Path) -> None:
    rows = [row for path in sorted((corpus / "removals").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    stages = {
        each.reason: each for each in dropped_of(corpus).reasons if each.reason in {row["reason"] for row in rows}
    }
    assert stages
    for reason, each in stages.items():
        own = {
            f"{dropped_hash(each.stage, reason, row['source'], row['origin'], row['id']):016x}": row
            for row in rows
            if row["reason"] == reason
        }
        assert [document.hash for document in each.documents] == sorted(own)[:EXAMPLES]
        for document in each.documents:
            row = own[document.hash]
            assert document.origin == row["origin"]
            assert document.values[0].value == row["kept_id"].hex()


def test_no_text_is_in_it(corpus: Path) -> None:
    """Addresses, names and numbers alone: no word of an excerpt."""
    said = (corpus / DROPPED).read_text()
    excerpts = [
        row["excerpt"]
        for path in (corpus / "rejects").glob("*.parquet")
        for row in pq.read_table(path).to_pylist()
        if len(row["excerpt"]) > 80
    ]
    assert excerpts
    assert not [text for text in excerpts if text[20:60] in said]


def test_what_decided_stands_beside_the_threshold(corpus: Path) -> None:
    measured = {each.reason: each.documents[0].values for each in dropped_of(corpus).reasons}
    (language, score) = measured["language-not-allowed"]
    assert language.name == "language" and score.name == "language_score"
    numbers = [values for reason, values in measured.items() if reason.startswith(("basic-", "gopher-", "repetition-"))]
    assert [value for values in numbers for value in values if value.limit is not None and value.value != value.limit]


@one_commit_in_four
def test_a_phase_of_an_older_version_is_missing_and_that_is_said(small: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    run(*command(small, old))
    report = json.loads((old / "work" / "clean.json").read_bytes())
    del report["dropped"], report["sha256"]
    (old / "work" / "clean.json").write_bytes(seal(report))
    run(*command(small, new, "--reuse", old))
    assert dropped_of(new).phases == ("shards",)
    assert verify(str(new)).failures == []


def test_verify_sees_what_disagrees(corpus: Path, tmp_path: Path) -> None:
    def edit(change: Callable[[Any, Any], object]) -> list[str]:
        prefix = tmp_path / "edited"
        shutil.rmtree(prefix, ignore_errors=True)
        shutil.copytree(corpus, prefix, ignore=shutil.ignore_patterns("work"))
        found, manifest = json.loads((prefix / DROPPED).read_bytes()), manifest_of(prefix)
        change(found, manifest)
        (prefix / DROPPED).write_text(json.dumps(found))
        size, crc32c, sha256 = checksums(prefix / DROPPED)
        for file in manifest["files"]:
            if file["path"] == DROPPED:
                file |= {"size": size, "crc32c": crc32c, "sha256": sha256}
        replace_manifest(prefix, manifest)
        return [failure for failure in verify(str(prefix)).failures if failure.startswith(DROPPED)]

    def unlist(found: Any, manifest: Any) -> None:
        manifest["files"] = [file for file in manifest["files"] if file["path"] != DROPPED]

    assert edit(lambda found, manifest: None) == []
    (failure,) = edit(lambda found, manifest: found["reasons"][0].update(reason="no-such-reason"))
    assert "0 expected" in failure
    (failure,) = edit(lambda found, manifest: found.pop("phases"))
    assert "phases: Field required" in failure
    assert edit(unlist) == [f"{DROPPED}: not in manifest.json"]


def test_it_is_read_as_it_was_written(corpus: Path) -> None:
    data = (corpus / DROPPED).read_bytes()
    assert dump_dropped(parse_dropped(data)) == data


def test_texts_are_read_again_for_a_page_outside_the_corpus(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "dropped.html"
    assert execute(["report", str(corpus), "--texts"]) == 2
    assert execute(["report", str(corpus), "--texts", "--output", str(corpus / "x.html")]) == 2
    assert "is in the corpus" in capsys.readouterr().err and not (corpus / "x.html").exists()
    assert execute(["report", str(corpus), "--texts", "--output", str(page)]) == 0
    assert "quotes texts that the recipe dropped" in page.read_text()
    assert "<blockquote" in page.read_text()


def test_no_page_quotes_what_nobody_should_read() -> None:
    stages = {stage.name: stage for lane in ("web", "code") for stage in lane_stages(lane)}
    shut = {name for name, stage in stages.items() if not may_quote(stage)}
    assert {"secrets", "pii", "toxicity", "opt-out", "page-license", "url"} <= shut
    assert not {"heuristics", "quality", "language", "near-duplicates"} & shut
    assert not may_quote(None) and HIDDEN


def test_a_count_that_no_run_can_have_is_refused(corpus: Path) -> None:
    """A share of it could not be computed: whole numbers of JSON may be larger than any float."""
    data = dump_dropped(dropped_of(corpus))
    assert parse_dropped(data).reasons
    for name in (b"size", b"value"):
        forged = re.sub(rb'"%s":[0-9.]+' % name, b'"%s":1' % name + b"0" * 400, data, count=1)
        assert forged != data
        with pytest.raises(FormatError, match=r"dropped\.json: reasons"):
            parse_dropped(forged)
