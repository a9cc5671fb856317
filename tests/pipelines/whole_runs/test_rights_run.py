"""Opt-outs and licences of pages through whole runs: new opt-outs on an old run, nothing lost, the same bytes."""

import hashlib
import json
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import Manifest, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from tests.corpus_factory import tokenizer_json
from tests.fork_server import ForkServer
from tests.pipelines.inputs import corpus_bytes, run
from tests.pipelines.small_runs import OFF
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.transforms.rights.rights_files import CASES, CC, ROWS, write_table

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

AS_OF = "2026-03-31"


def page(number: int) -> str:
    """HTML of some words; every third page is under a licence."""
    licence = f'<link rel="license" href="{CC}/{("by", "by-nc")[number % 2]}/4.0/">' if number % 3 == 0 else ""
    return f"<html><head>{licence}</head><body><p>Page number {number} has these words and no others.</p></body></html>"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rights")
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    rows = [{"text": page(number), "url": url} for number, (url, _, _) in enumerate(CASES)]
    (folder / "pages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = {"name": "crawl", "paths": [str(folder / "pages.jsonl")], "content": "html"}
    tokenizer = {"path": str(folder / "tokenizer.json"), "eos": None}
    data = {"name": "rights", "sources": [source], "tokenizer": tokenizer, "rejects": {"rate": 1.0}, **OFF}
    (folder / "before.json").write_text(json.dumps(data))
    data["opt_out"] = {"tables": [write_table(folder / "table")], "as_of": AS_OF}
    (folder / "classes.csv").write_text("license,class\nCC-BY,attribution\nCC-BY-NC,non-commercial\n")
    data["page_license"] = {"classes": str(folder / "classes.csv"), "deny": ["non-commercial"]}
    (folder / "recipe.json").write_text(json.dumps(data))
    run("refine", folder / "before.json", "--output", folder / "before", "--workers", 0)
    return folder / "recipe.json"


@pytest.fixture(scope="module")
def corpus(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This week's opt-outs on the old run: phase 3 alone."""
    prefix = tmp_path_factory.mktemp("one") / "corpus"
    done = run("refine", recipe, "--output", prefix, "--workers", 0, "--reuse", recipe.parent / "before")
    assert "clean reused" in done.stdout and "dedup reused" in done.stdout
    return prefix


def manifest_of(prefix: Path) -> Manifest:
    return read_manifest(open_store(prefix))


def stage(prefix: Path, name: str) -> dict[str, Any]:
    return next(dict(row) for row in manifest_of(prefix).funnel if row["stage"] == name)


def provenance(prefix: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(prefix.glob("*/*/*.provenance.parquet")) for row in pq.read_table(path).to_pylist()]


def expected(number: int) -> str:
    """The reason for which the page of a case is dropped, "" for none."""
    return CASES[number][1] or ("license-denied" if number % 3 == 0 and number % 2 else "")


def test_every_page_is_kept_or_dropped_for_its_reason(corpus: Path) -> None:
    wanted = {url: expected(number) for number, (url, _, _) in enumerate(CASES)}
    rejects = {row["url"]: row["reason"] for row in pq.read_table(corpus / "rejects").to_pylist()}
    kept = {row["url"] for row in provenance(corpus)}
    assert kept == {url for url, reason in wanted.items() if not reason}
    assert rejects == {url: reason for url, reason in wanted.items() if reason}
    for name in ("opt-out", "page-license"):
        row = stage(corpus, name)
        lost = sum(each["documents"] for each in row["dropped"].values())
        assert row["in"]["documents"] == row["kept"]["documents"] + lost and not row["dead"]
    assert stage(corpus, "opt-out")["in"]["documents"] == len(CASES) == len(provenance(recipe_before(corpus)))
    assert verify(str(corpus)).failures == []


def recipe_before(corpus: Path) -> Path:
    """The run that was taken over."""
    return (
        Path(json.loads((corpus / "manifest.json").read_text())["recipe"]["opt_out"]["tables"][0]).parents[1] / "before"
    )


def test_rejects_say_which_rule_decided(corpus: Path) -> None:
    found = {row["url"]: row["found"] for row in pq.read_table(corpus / "rejects").to_pylist()}
    assert found["http://changed.example/a"] == "robots.txt since 2026-03-05: gptbot disallow: /"
    assert found["https://deep.listed.example/a"] == "listed.example"
    traced = run("trace", corpus, "--url", "http://changed.example/a", check=False).stdout
    assert "opt-out-robots" in traced and "gptbot disallow: /" in traced


def test_licences_are_a_column_whether_or_not_there_is_a_rule(recipe: Path, corpus: Path) -> None:
    for prefix, licences in (
        (corpus, {"", "CC-BY-4.0"}),
        (recipe.parent / "before", {"", "CC-BY-4.0", "CC-BY-NC-4.0"}),
    ):
        rows = provenance(prefix)
        assert {row["license"] or "" for row in rows} == licences
        assert all((row["license_from"] == "link") == bool(row["license"]) for row in rows)
    for row in provenance(corpus):
        assert row["license_class"] == ("attribution" if row["license"] else "")
    dated = {row["url"]: json.loads(row["meta"]).get("opt_out_as_of") for row in provenance(corpus)}
    assert dated["https://free.example/a"] == "2026-01-01" and dated["https://unlisted.example/a"] is None


def test_the_manifest_says_which_opt_outs_were_applied(corpus: Path) -> None:
    section = manifest_of(corpus).recipe["opt_out"]
    assert section["as_of"] == AS_OF and "GPTBot" in section["agents"] and len(section["tables"]) == 1
    run_of = json.loads((corpus / "_run.json").read_text())
    files = next(each["files"] for each in run_of["stages"]["shards"] if each["name"] == "opt-out")
    assert files == [[path, hashlib.sha256(Path(path).read_bytes()).hexdigest()] for path in section["tables"]]
    row = stage(corpus, "opt-out")
    assert row["found"]["known"]["documents"] > 0 and row["found"]["robots.txt"]["documents"] > 0


def test_the_same_bytes_from_the_beginning_in_other_processes(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    run("refine", recipe, "--output", tmp_path / "out", "--workers", 2, hash_seed=1)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)


def test_killed_and_started_again(recipe: Path, corpus: Path, forks: ForkServer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = ("--reuse", recipe.parent / "before")
    forks.start("refine", recipe, "--output", out, "--workers", 0, *before)
    while not (out / "work" / "dedup.json").exists() and not forks.ended:
        time.sleep(0.001)
    forks.kill(signal.SIGKILL)
    assert forks.wait().was_killed and not (out / "manifest.json").exists()
    run("refine", recipe, "--output", out, "--workers", 0, *before)
    assert corpus_bytes(out) == corpus_bytes(corpus)


def test_a_table_that_changed_is_another_run(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    data = json.loads(recipe.read_text())
    data["opt_out"]["tables"] = [write_table(tmp_path / "table", ROWS[:1])]
    (tmp_path / "other.json").write_text(json.dumps(data))
    done = run("refine", tmp_path / "other.json", "--output", corpus, "--workers", 0, check=False)
    assert done.returncode != 0 and "opt_out" in done.stderr


def test_tables_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*ROWS, {"host": "nohost"})))
    table = tmp_path / "new" / "opt-outs.table"
    done = run("opt-outs", tmp_path / "rows.jsonl", "--output", table)
    assert f"{len(ROWS)} rows taken" in done.stdout and "1 rows left out: 1 bad-kind" in done.stdout
    assert table.read_bytes() == Path(write_table(tmp_path / "same")).read_bytes()
    again = run("opt-outs", tmp_path / "rows.jsonl", "--output", table, check=False)
    assert again.returncode == 2 and "exists" in again.stderr
    run("opt-outs", tmp_path / "rows.jsonl", "--output", table, "--overwrite")
    assert sorted(path.name for path in table.parent.iterdir()) == [table.name]


@pytest.mark.parametrize("kind", ["table", "classes"])
def test_a_bit_that_flips_behind_the_launch_publishes_nothing(
    kind: str, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are hashed at the launch; what the workers open later has to be the same."""
    data = json.loads(recipe.read_text())
    table, classes = Path(write_table(tmp_path / "table")), tmp_path / "classes.csv"
    classes.write_text("license,class\nCC-BY,attribution\nCC-BY-NC,non-commercial\n")
    data["opt_out"]["tables"], data["page_license"]["classes"] = [str(table)], str(classes)
    path = table if kind == "table" else classes
    claim = Refinement._claim  # between the checks and the jobs

    def flip(self: Refinement) -> bool:
        changed = bytearray(path.read_bytes())
        changed[-2 if kind == "classes" else 4096 + 9] ^= 1
        path.write_bytes(changed)
        return claim(self)

    monkeypatch.setattr(Refinement, "_claim", flip)
    refinement = Refinement(
        parse_recipe(data), str(tmp_path / "out"), Runner("local", workers=0, quiet=True), say=lambda line: None
    )
    with pytest.raises(Exception, match=f"{path.name}: other bytes, SHA-256 .* when the run was planned"):
        refinement.run()
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_table_that_is_damaged_before_the_launch_is_refused_by_the_launch(recipe: Path, tmp_path: Path) -> None:
    data = json.loads(recipe.read_text())
    table = Path(write_table(tmp_path / "table"))
    data["opt_out"]["tables"] = [str(table)]
    (tmp_path / "recipe.json").write_text(json.dumps(data))
    damaged = bytearray(table.read_bytes())
    damaged[4096 + 9] ^= 1
    table.write_bytes(damaged)
    for more in ((), ("--dry-run",)):
        done = run("refine", tmp_path / "recipe.json", "--output", tmp_path / "out", "--workers", 0, *more, check=False)
        assert done.returncode == 2 and "opt-outs.table: is damaged, its bytes do not have" in done.stderr
