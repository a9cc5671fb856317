"""The whole command: counts that reconcile, refusals, reuse, and what a recipe leaves out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from refinery.loader.format.manifest import read_manifest, unseal
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.waves import cut_waves
from refinery.transforms.read.sources import ReadTask
from tests.pipelines.inputs import corpus_bytes, refine, run
from tests.sampling import one_commit_in_four, sampled


def test_every_stage_had_something_to_do_and_the_counts_reconcile(corpus: Path) -> None:
    manifest = read_manifest(open_store(str(corpus)))
    lost = {row["stage"] for row in manifest.funnel if row["dropped"] or row["dead"]}
    assert {"read", "url", "language", "heuristics", "exact-duplicates", "near-duplicates", "quality"} <= lost
    assert {row["source"] for row in manifest.funnel} == {"crawl", "notes"}
    written = sum(len(shard.index) for split in ("train", "validation") for shard in Corpus(str(corpus)).shards(split))
    encoded = sum(row["kept"]["documents"] for row in manifest.funnel if row["stage"] == "encode")
    assert written == encoded == manifest.totals["documents"] > 20


def test_verify_accepts_it_and_the_terminal_shows_the_funnel(corpus: Path) -> None:
    assert run("verify", corpus).returncode == 0
    out, err = ((corpus.parent / name).read_text() for name in ("stdout", "stderr"))
    assert "near-duplicate" in out and "of read" in out and "tokens" in out
    assert "documents/s" in err


def test_a_finished_corpus_is_immutable(corpus: Path, inputs: Path) -> None:
    before = corpus_bytes(corpus, leave_out=())
    again = refine(inputs, corpus)
    assert "complete already" in again.stdout
    other = refine(inputs, corpus, "--set", "near_dup.threshold=0.8", check=False)
    assert other.returncode == 1
    assert "near_dup.threshold is 0.75 there, 0.8 here" in other.stderr and "--reuse" in other.stderr
    assert corpus_bytes(corpus, leave_out=()) == before


@pytest.mark.parametrize(
    ("setting", "phases"),
    sampled(
        "phases that are reused", [("shards.seed=7", ["shards"]), ("near_dup.threshold=0.9", ["dedup", "shards"])], 1
    ),
)
def test_reuse_costs_only_what_changed(
    corpus: Path, inputs: Path, tmp_path: Path, setting: str, phases: list[str]
) -> None:
    reused, fresh = tmp_path / "reused", tmp_path / "fresh"
    done = refine(inputs, reused, "--workers", 1, "--reuse", corpus, "--set", setting)
    for phase in ("clean", "dedup"):
        assert (f"reuse: {phase} reused" in done.stdout) is (phase not in phases)
    assert not (reused / "work" / "documents").exists()
    refine(inputs, fresh, "--workers", 1, "--set", setting)
    assert corpus_bytes(reused) == corpus_bytes(fresh)
    assert run("verify", reused).returncode == 0


def test_reuse_of_nothing_is_refused(inputs: Path, tmp_path: Path) -> None:
    done = refine(inputs, tmp_path / "out", "--reuse", tmp_path / "nowhere", check=False)
    assert done.returncode == 1 and "there is no finished phase" in done.stderr


@one_commit_in_four
def test_work_elsewhere_and_discarded(small: Path, tmp_path: Path) -> None:
    refine(small, tmp_path / "here")
    refine(small, tmp_path / "out", "--work", tmp_path / "parts")
    assert not (tmp_path / "out" / "work").exists() and (tmp_path / "parts" / "documents").exists()
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(tmp_path / "here")
    refine(small, tmp_path / "out2", "--discard-work")
    assert not any(path.is_file() for path in (tmp_path / "out2" / "work").rglob("*"))
    assert corpus_bytes(tmp_path / "out2") == corpus_bytes(tmp_path / "here")


@one_commit_in_four
def test_documents_of_a_run_are_a_source(corpus: Path, inputs: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    source = {"name": "old", "paths": [f"{corpus}/work/documents/*.parquet"], "format": "documents"}
    recipe.write_text(
        json.dumps({"name": "n", "sources": [source], "tokenizer": {"path": str(inputs / "tokenizer.json")}})
    )
    run("refine", recipe, "--output", tmp_path / "out", "--workers", 0)
    manifest = read_manifest(open_store(str(tmp_path / "out")))
    old = read_manifest(open_store(str(corpus)))
    cleaned = sum(row["kept"]["documents"] for row in old.funnel if row["stage"] == "heuristics")
    assert sum(row["in"]["documents"] for row in manifest.funnel if row["stage"] == "extract") == cleaned
    assert manifest.totals["documents"] > 0


def test_everything_can_be_left_out(inputs: Path, tmp_path: Path) -> None:
    off = ["secrets", "url", "language", "heuristics", "exact_dup", "near_dup", "quality", "toxicity", "pii"]
    settings = [part for name in off for part in ("--set", f"{name}=off")]
    refine(inputs, tmp_path / "out", *settings, "--set", "tokenizer.eos=null", "--workers", 0)
    manifest = read_manifest(open_store(str(tmp_path / "out")))
    assert {row["stage"] for row in manifest.funnel} == {"read", "extract", "encode"}
    assert run("verify", tmp_path / "out").returncode == 0


def test_too_many_dead_letters_fail_until_they_are_tolerated(inputs: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"document number {i} is fine"}) for i in range(80)] + ["{broken"] * 20
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    off = [part for name in ("heuristics", "language", "quality") for part in ("--set", f"{name}=off")]
    arguments = ["--input", tmp_path / "bad.jsonl", "--workers", 0, *off]
    done = refine(inputs, tmp_path / "out", *arguments, check=False)
    assert done.returncode == 1 and "20 of 100" in done.stderr and "failures.max_ratio" in done.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
    done = refine(inputs, tmp_path / "out", *arguments, "--set", "failures.max_ratio=0.5")
    assert "clean: 1 waves are done, 0 to go" in done.stdout
    assert run("verify", tmp_path / "out").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "near_dup.treshold=0.8"], "did you mean"),
        (["--set", "near_dup.threshold=high"], "near_dup.threshold"),
        (["--set", "tokenizer.path=/nowhere.json"], "tokenizer.path: '/nowhere.json'"),
        (["--set", "tokenizer.path=/nowhere.json"], "refinery train-tokenizer learns one"),
        (["--set", "tokenizer.eos=</s>"], "tokenizer.eos: '</s>'"),
        (["--set", "language.languages={eng: 0.5}"], "language.languages"),
        (["--set", "language.model=README.md"], "language"),
        (["--set", "quality.model=README.md"], "quality"),
        (["--set", "url.domain_lists=[/nowhere]"], "url"),
        (["--set", "near_dup.bands=20"], "near_dup.bands"),
        (["--workers", "-1"], "--workers"),
        (["--runner", "DirectRuner"], "DirectRuner"),
        (["--input", "/nowhere/*.warc.gz"], "no file matches"),
        (["--set", "sources.crawl.format=wrac"], "sources[0].format"),
        (["--wrokers", "3"], "did you mean --workers"),
        (["--input", "a.warc.gz", "b.warc.gz"], "quote a pattern"),
        (["b.warc.gz", "--save_main_session"], "quote a pattern"),
    ],
)
def test_mistakes_are_one_line_before_anything_runs(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """In this process, which has imported everything; what a process of its own prints is seen in the other tests."""
    code = execute(["refine", f"{inputs}/recipe.yaml", "--output", f"{tmp_path}/out", "--workers", "0", *arguments])
    output = capsys.readouterr().err
    assert code == 2 and message in output and output.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_settings_that_decide_nothing_are_not_part_of_the_fingerprint(corpus: Path, inputs: Path) -> None:
    assert "complete already" in refine(inputs, corpus, "--set", "run.wave_files=3", "--set", "failures.grace=3").stdout


def test_run_file_says_what_the_run_is(corpus: Path, inputs: Path) -> None:
    identity = unseal((corpus / "_run.json").read_bytes(), "_run.json")
    assert {entry["source"] for entry in identity["inputs"]} == {"crawl", "notes"}
    assert identity["fingerprint"] == read_manifest(open_store(str(corpus))).fingerprint
    assert load_recipe(str(inputs / "recipe.yaml")).name == identity["name"]


def test_waves_are_cut_by_bytes_and_files() -> None:
    tasks = [
        ReadTask(path=str(i), format="jsonl", source="s", file_index=i, size=size)
        for i, size in enumerate([5, 5, 5, 50, 1])
    ]
    assert [len(wave) for wave in cut_waves(tasks, 10, 10)] == [2, 1, 1, 1]
    assert [len(wave) for wave in cut_waves(tasks, 1000, 2)] == [2, 2, 1]
    assert cut_waves([], 10, 10) == []


@one_commit_in_four
def test_nothing_foreign_is_ever_deleted(inputs: Path, tmp_path: Path) -> None:
    foreign = [
        "out/work/documents/mine.txt",
        "out/work/thesis.doc",
        "parts/verdicts/part-x.parquet",
        "parts/.tmp-notes",
    ]
    runs = ("out", []), ("out2", ["--work", tmp_path / "parts"])
    for output, more in runs:  # folders of others are refused; these are the runs' from here on
        refine(inputs, tmp_path / output, "--workers", 0, *more)
    for name in foreign:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    for output, more in runs:
        refine(inputs, tmp_path / output, "--workers", 0, "--discard-work", *more)
    assert all((tmp_path / name).read_text() == "mine" for name in foreign)


@pytest.mark.parametrize("work", ["out", ".", "out/../out"])
def test_work_must_not_hold_the_corpus(inputs: Path, tmp_path: Path, work: str) -> None:
    done = refine(inputs, tmp_path / "out", "--work", tmp_path / work, check=False)
    assert done.returncode == 1 and "--work" in done.stderr and not (tmp_path / "out").exists()


@one_commit_in_four
@pytest.mark.parametrize(
    ("folder", "phase"), sampled("damaged parts of a run", [("documents", "dedup"), ("signatures", "clean")], 1)
)
def test_damage_in_the_work_parts_is_not_published(inputs: Path, tmp_path: Path, folder: str, phase: str) -> None:
    """One flipped bit in the data of a part, after the phase that wrote it was finished."""
    refine(inputs, tmp_path / "out", "--workers", 0)
    for name in ("manifest.json", "work/shards.json", "work/shards/report.json"):
        (tmp_path / "out" / name).unlink()
    if phase == "clean":
        for name in ("work/dedup.json", "work/dedup/report.json"):
            (tmp_path / "out" / name).unlink()
    part = max((tmp_path / "out" / "work" / folder).iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 1
    part.write_bytes(data)
    done = refine(inputs, tmp_path / "out", "--workers", 0, check=False)
    assert done.returncode == 1 and not (tmp_path / "out" / "manifest.json").exists()


@one_commit_in_four
def test_a_lost_wave_is_read_again(inputs: Path, corpus: Path, tmp_path: Path) -> None:
    refine(inputs, tmp_path / "out", "--workers", 0)
    for name in ("manifest.json", "work/clean.json", "work/dedup.json", "work/shards.json"):
        (tmp_path / "out" / name).unlink()
    for name in ("clean/wave-00000.json", "dedup/report.json", "shards/report.json"):
        (tmp_path / "out" / "work" / name).unlink()
    for part in (tmp_path / "out" / "work" / "verdicts").iterdir():
        part.unlink()
    refine(inputs, tmp_path / "out", "--workers", 0)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)


def test_a_proxy_for_the_network_is_not_for_the_workers(small: Path, tmp_path: Path) -> None:
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy"), "http://127.0.0.1:1")
    refine(small, tmp_path / "out", "--workers", 2, environment=proxies)


@one_commit_in_four
def test_no_code_from_the_working_directory_runs(small: Path, tmp_path: Path) -> None:
    (tmp_path / "orjson.py").write_text("import pathlib; pathlib.Path('executed').touch()")
    command = [Path(sys.executable).parent / "refinery", "refine", small / "recipe.yaml", "--output", "out"]
    subprocess.run([*command, "--workers", "1"], cwd=tmp_path, check=True, capture_output=True, timeout=250)
    assert not (tmp_path / "executed").exists()


@one_commit_in_four
def test_one_absurd_record_costs_one_dead_letter(inputs: Path, tmp_path: Path) -> None:
    good = [json.dumps({"text": f"fine text number {i}"}) for i in range(20)]
    deep = ['{"text":"x","url":' + "[" * depth + "]" * depth + "}" for depth in (65, 900, 1010, 100_000)]
    (tmp_path / "in.jsonl").write_text("\n".join([*deep, *good]))
    off = [part for name in ("language", "heuristics", "quality", "near_dup") for part in ("--set", f"{name}=off")]
    for workers in (0, 1):
        refine(inputs, tmp_path / f"out{workers}", "--input", tmp_path / "in.jsonl", "--workers", workers, *off)
    (row,) = [r for r in read_manifest(open_store(str(tmp_path / "out0"))).funnel if r["stage"] == "read"]
    assert (row["in"]["documents"], row["kept"]["documents"]) == (24, 20)
    assert corpus_bytes(tmp_path / "out0") == corpus_bytes(tmp_path / "out1")
