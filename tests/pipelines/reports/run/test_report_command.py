"""`refinery report` on a finished run, on old and damaged ones, in a bucket; and the page that every run leaves."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, RUN, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.statistics.published import STATISTICS
from refinery.pipelines.reports.run.facts import read_facts
from refinery.pipelines.reports.run.samples import MOST_REJECTS, PER_REASON, kept_texts, read_rejects, some_files
from refinery.pipelines.reports.run.write import REPORT, leave_report
from refinery.transforms.core.job.report import REJECT_SCHEMA
from tests.corpus_factory import edit_manifest
from tests.fake_gcs import fake_gcs


@pytest.fixture
def copy(corpus: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(corpus, tmp_path / "copy"))


def test_every_run_leaves_one_that_verify_passes_over(corpus: Path) -> None:
    page = (corpus / REPORT).read_text()
    assert page.startswith("<!doctype html>")
    assert "core time" in page and "Time and cost" in page  # seconds were known
    assert verify(str(corpus)).failures == []
    assert REPORT not in {entry.path for entry in read_manifest(open_store(str(corpus))).all_files}


def test_it_is_not_written_again_unless_asked(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / REPORT).write_text("mine")
    assert execute(["report", str(copy)]) == 0
    assert "exists already" in capsys.readouterr().out
    assert (copy / REPORT).read_text() == "mine"
    assert execute(["report", str(copy), "--overwrite"]) == 0
    assert (copy / REPORT).read_text().startswith("<!doctype html>")


def test_a_file_elsewhere(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (corpus / REPORT).read_bytes()
    arguments = ["report", str(corpus), "--output", str(tmp_path / "a" / "page.html")]
    assert execute([*arguments, "--core-hour-price", "3600"]) == 0
    assert "$3600 per core hour" in (tmp_path / "a" / "page.html").read_text()
    assert execute(arguments) == 2  # it is there
    assert "--overwrite" in capsys.readouterr().err
    assert (corpus / REPORT).read_bytes() == before


def forget_statistics(payload: dict[str, Any]) -> None:
    payload["files"] = [entry for entry in payload["files"] if entry["path"] != STATISTICS]


def test_of_an_older_corpus_without_work_it_says_what_is_missing(copy: Path) -> None:
    (copy / STATISTICS).unlink(missing_ok=True)
    edit_manifest(copy, forget_statistics)
    shutil.rmtree(copy / "work")
    assert execute(["report", str(copy), "--overwrite"]) == 0
    page = (copy / REPORT).read_text()
    assert "are missing, because the corpus is of an older version" in page
    assert "Seconds, throughput and cost are not known" in page
    assert 'id="cost"' not in page and 'id="funnel"' in page and 'id="samples"' in page


def test_what_is_damaged_is_left_out(copy: Path) -> None:
    (copy / STATISTICS).write_text('{"points": 1}')
    for path in (copy / "rejects").glob("*.parquet"):
        path.write_bytes(b"no parquet")
    facts = read_facts(open_store(str(copy)), None)
    assert len([said for said in facts.missing if "cannot be read" in said]) == 2
    assert facts.kept
    (copy / RUN).unlink()
    with pytest.raises(FormatError, match=r"_run\.json: missing, \d+ bytes expected"):
        read_facts(open_store(str(copy)), None)


@pytest.mark.parametrize("broken", ["", MANIFEST])
def test_what_is_no_finished_run_is_refused(tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    if broken:
        (tmp_path / broken).write_text("{}")
    assert execute(["report", str(tmp_path)]) == 2
    assert "refinery:" in capsys.readouterr().err
    assert not (tmp_path / REPORT).exists()


def test_a_web_server_is_not_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", "https://host.invalid/corpus"]) == 2
    assert "give --output FILE" in capsys.readouterr().err


def test_a_wrong_price_is_refused(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(corpus), "--core-hour-price", "cheap"]) == 2
    assert "--core-hour-price" in capsys.readouterr().err


def test_in_a_bucket(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("corpus") as server:
        server.use(monkeypatch)
        server.put_folder("corpus", "web/", corpus)
        del server.objects["corpus", f"web/{REPORT}"]
        assert execute(["report", "gs://corpus/web"]) == 0
        page = server.objects["corpus", f"web/{REPORT}"].data.decode()
    assert page.startswith("<!doctype html>")
    assert "Time and cost" in page


def test_a_report_that_fails_does_not_fail_the_run(copy: Path) -> None:
    (copy / REPORT).unlink()
    (copy / MANIFEST).write_bytes(b"")
    said: list[str] = []
    leave_report(open_store(str(copy)), None, (), said.append)
    assert len(said) == 1 and said[0].startswith(f"warning: no {REPORT} was written (FormatError: ")
    assert "\n" not in said[0]


def test_samples_are_few_whole_and_the_same(corpus: Path, copy: Path) -> None:
    opened = PublishedCorpus(str(copy))
    texts = kept_texts(opened)
    assert texts == kept_texts(PublishedCorpus(str(corpus)))
    assert all(text.text and text.tokens for text in texts)
    names = some_files(opened, "rejects")[0]
    rows = [dict.fromkeys(REJECT_SCHEMA.names, f"{n}") | {"stage": f"s{n % 50}", "reason": "r"} for n in range(5000)]
    rows[7]["url"] = "https://example.org/" + "a" * 1_000_000
    pq.write_table(pa.Table.from_pylist(rows, schema=REJECT_SCHEMA), copy / names[0])
    found = read_rejects(opened)
    assert sum(map(len, found.samples.values())) <= MOST_REJECTS
    assert all(len(each) <= PER_REASON for each in found.samples.values())
    assert found.rows["s7", "r"] == 100
    rows.reverse()  # the order of rows says nothing
    pq.write_table(pa.Table.from_pylist(rows, schema=REJECT_SCHEMA), copy / names[0])
    assert read_rejects(opened).samples == found.samples
    assert max(len(reject.url) for each in found.samples.values() for reject in each) <= 200
