"""The beginning of a run on a cluster: what its arguments may be, and what it makes of a recipe."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest
import yaml

from refinery.pipelines.cli import cluster_kubernetes, cluster_slurm, refine
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run.cluster.begin import Words, check_arguments
from refinery.pipelines.run.cluster.pods import make_objects
from refinery.pipelines.run.cluster.progress import ProgressReader
from refinery.pipelines.runners.cluster.kubernetes import Place
from tests.pipelines.run.cluster.cut_runs import CutRun
from tests.pipelines.small_runs import make_small_inputs

LEAST = ["r.yaml", "--output", "out", "--tasks", "4"]


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    cluster_slurm.arguments(parser)
    return parser.parse_args([*LEAST, *words])


def check(*words: str) -> Words:
    return check_arguments(parsed(*words), refine.run_arguments)


def test_words_that_only_the_last_command_takes() -> None:
    words = check("--workers", "3", "--set", "a=b", "--discard-work", "--track", "mlflow", "--scratch", "$X")
    assert words.all == ["r.yaml", "--set", "a=b", "--workers", "3", "--output", "out"]
    assert words.ending == ["--discard-work", "--track", "mlflow"]


def test_workers_are_said_where_they_are_this_machines() -> None:
    default = parsed().workers
    assert check().all == ["r.yaml", "--workers", str(default), "--output", "out"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--runner", "DataflowRunner"], "--runner"),
        (["--workers", "0"], "--workers"),
        (["--throttle", "-1"], "--throttle"),
        (["--set", "x.api_key=abc"], "x.api_key"),
        (["--work", "a\nb"], "do not print"),
    ],
)
def test_what_jobs_cannot_have_is_refused(words: list[str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        check(*words)


@pytest.mark.parametrize("words", [["--dry-run"], ["--reuse=x"], ["--slices=3"], ["--slice=1/3"], ["--until=clean"]])
@pytest.mark.parametrize("engine", [["slurm"], ["kubernetes", "--image=i"]], ids=lambda words: words[0])
def test_what_a_run_by_slices_has_no_use_for_is_unknown(
    engine: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """These options are of single commands. The help does not list them."""
    name = words[0].partition("=")[0]
    assert execute(["cluster", *engine, *LEAST, *words]) == 2
    assert name in capsys.readouterr().err
    with pytest.raises(SystemExit):
        execute(["cluster", engine[0], "--help"])
    assert f"{name} " not in capsys.readouterr().out


@pytest.mark.parametrize("tasks", ["0", "100001"])
def test_the_number_of_slices_is_bounded(tasks: str) -> None:
    with pytest.raises(ValueError, match="--tasks"):
        check("--tasks", tasks)


def test_a_bucket_needs_a_folder_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["cluster", "slurm", "r.yaml", "--output", "s3://b/x", "--tasks", "2"]) == 2
    assert "--scripts: none given" in capsys.readouterr().err


def test_the_inputs_are_cut_and_scripts_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    make_small_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # no Slurm
    words = ["cluster", "slurm", "recipe.yaml", "--output", "out", "--tasks", "2", "--workers", "1"]
    assert execute(words) == 0
    said = capfd.readouterr().out
    assert "scripts in out-slurm" in said and "submit them:  out-slurm/submit.sh" in said
    steps = [step.name for step in ProgressReader("out").read().steps]
    assert steps[0] == "clean" and steps[-1] == "publish" and len(steps) > 3
    assert {path.stem for path in Path("out-slurm").glob("*.sbatch")} == {*steps}
    assert execute(["cluster", "status", "out", "--json"]) == 1
    assert [step["done"] for step in json.loads(capfd.readouterr().out)["steps"]] == [0] * len(steps)
    other = [*words[:-3], "3", *words[-2:]]  # another number of slices
    assert execute(other) == 1
    assert "was cut into 2 slices" in capfd.readouterr().err


# --- Kubernetes ----------------------------------------------------------------------------------------------------


def pods(recipe: Path, *words: str) -> Namespace:
    parser = ArgumentParser()
    cluster_kubernetes.arguments(parser)
    return parser.parse_args([str(recipe), "--tasks", "3", "--workers", "2", "--image", "i", *words])


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    fields = {
        "name": "web",
        "sources": [{"name": "s", "paths": ["s3://bucket/in/*.jsonl"]}],
        "tokenizer": {"path": "s3://bucket/tokenizer.json"},
        "toxicity": False,
        "quality": False,
        "perplexity": False,
    }
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


def never() -> ProgressReader:
    raise AssertionError("nothing is cut before the arguments are checked")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--output", "out"], "--output: 'out' given"),
        (["--output", "s3://b/x", "--work", "work"], "--work: 'work' given"),
        (["--output", "s3://b/x", "--set", "tokenizer.path=t.json"], "tokenizer.path: 't.json' given"),
        (["--output", "s3://b/x", "--input", "in/*.gz"], r"sources\[0\].paths: 'in/\*.gz' given"),
    ],
)
def test_what_pods_cannot_reach_is_refused(words: list[str], named: str, recipe: Path) -> None:
    args = pods(recipe, *words)
    with pytest.raises(ValueError, match=named):
        make_objects(args, Words([], []), Place("i"), never)


def test_steps_that_are_done_are_left_out(recipe: Path, tmp_path: Path) -> None:
    run = CutRun(tmp_path)
    args = pods(recipe, "--output", "s3://bucket/x")
    words = check_arguments(args, refine.run_arguments)

    def names() -> list[str]:
        objects = make_objects(args, words, Place("i"), lambda: ProgressReader(str(run.prefix)))
        assert objects is not None
        config, *jobs = objects.all()
        assert config["data"]["recipe.yaml"] == recipe.read_text()
        assert str(recipe) not in json.dumps(jobs)
        return [job["metadata"]["name"].removeprefix(f"{objects.label}-") for job in jobs]

    assert names() == ["clean", "clean-end", "dedup-0", "dedup-1", "shards-0", "publish"]
    run.put("clean.json", {})
    run.put("dedup.json", {})
    assert names() == ["shards-0", "publish"]
    run.finish()
    assert make_objects(args, words, Place("i"), lambda: ProgressReader(str(run.prefix))) is None
