"""`refinery refine --runner DataflowRunner` from nothing to a verified corpus, on a fake Dataflow and a fake storage.

The fake does each job of the first run with the pipeline that Beam staged for it, so what runs here is what Dataflow
would get. The other runs are about launchers: there a job does its work by putting what that first job wrote.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path

import apache_beam as beam
import pytest
import yaml

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.reports.run.write import REPORT
from refinery.pipelines.run import phases
from refinery.pipelines.run import refine as refine_module
from refinery.pipelines.run.inspection.inspection import inspect
from refinery.pipelines.run.waves import cut_waves, wave_limits
from refinery.pipelines.runners.dataflow.job_records import read_jobs
from refinery.pipelines.runners.dataflow.jobs import PollingPolicy
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.read.sources import ReadTask
from tests.fake_dataflow import Call, FakeDataflow, FakeJob, fake_dataflow, run_staged
from tests.fake_gcs import FakeGcs, Fault, fake_gcs
from tests.pipelines.inputs import COMMAND, ROOT
from tests.pipelines.job_launcher import Killed, by_state
from tests.pipelines.small_runs import digests
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

PREFIX, WORK = "gs://corpus/web", "gs://staging/work"
PHASES = ("clean", "dedup", "shards")

Files = dict[tuple[str, str], bytes]  # (bucket, name) -> bytes


@pytest.fixture(scope="module")
def gcs(inputs: Path) -> Iterator[FakeGcs]:
    """A fake storage with the inputs of the small recipe in the bucket "raw"."""
    with fake_gcs("raw", "staging", "corpus") as server, pytest.MonkeyPatch.context() as patch:
        server.use(patch)
        server.put_folder("raw", "", inputs)
        yield server


@pytest.fixture(scope="module")
def recipe(gcs: FakeGcs, inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small recipe with all of its files in the fake storage."""
    text = (inputs / "recipe.yaml").read_text().replace(str(inputs), "gs://raw")
    path = tmp_path_factory.mktemp("dataflow") / "recipe.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(text) | {"run": {"wave_files": 100}}))
    return path


def test_a_recipe_may_be_in_a_bucket(gcs: FakeGcs, recipe: Path) -> None:
    """As the launcher in Cloud Run reads one of the user's own, which no image holds."""
    gcs.put("raw", "recipes/own.yaml", recipe.read_bytes())
    assert load_recipe("gs://raw/recipes/own.yaml") == load_recipe(str(recipe))
    with pytest.raises(RecipeError, match=r"the recipe cannot be read: .*gs://raw/recipes/none\.yaml"):
        load_recipe("gs://raw/recipes/none.yaml")
    with pytest.raises(RecipeError, match=r"ftp://host/own\.yaml: a local file, gs://"):
        load_recipe("ftp://host/own.yaml")


def arguments(recipe: Path, server: FakeDataflow, *more: str) -> list[str]:
    return [
        *("refine", str(recipe), "--output", PREFIX, "--work", WORK, "--runner", "DataflowRunner"),
        *("--project=project", "--region=europe-west4", "--temp_location=gs://staging/tmp"),
        *("--sdk_container_image=europe-west4-docker.pkg.dev/project/refinery/worker:1", "--sdk_location=container"),
        *("--service_account_email=worker@project.iam.gserviceaccount.com", "--use_public_ips", *server.flags, *more),
    ]


def files(gcs: FakeGcs) -> Files:
    return {place: stored.data for place, stored in gcs.objects.items() if place[0] != "raw"}


def clear(gcs: FakeGcs) -> None:
    for place in files(gcs):
        del gcs.objects[place]


@pytest.fixture(scope="module")
def finished(gcs: FakeGcs, recipe: Path) -> Iterator[tuple[Files, FakeDataflow]]:
    """A whole run of three jobs that really ran: the objects that it left, and the fake Dataflow."""
    with fake_dataflow() as server:
        server.plan = lambda job: ["PENDING", "DONE"]
        server.work = run_staged
        assert execute(arguments(recipe, server)) == 0
        yield files(gcs), server


def test_from_nothing_to_a_verified_corpus(finished: tuple[Files, FakeDataflow], gcs: FakeGcs, recipe: Path) -> None:
    _, server = finished
    assert [(name.rpartition("-")[0], state) for name, state in server.states()] == [
        ("refinery-demo-clean-00000", "DONE"),
        ("refinery-demo-dedup", "DONE"),
        ("refinery-demo-shards", "DONE"),
    ]
    for job, phase in zip(server.jobs, PHASES, strict=True):
        labels = job.body["labels"]
        assert (labels["refinery-phase"], labels["app"]) == (phase, "refinery")
        assert job.name.endswith(labels["refinery-run"])
    assert execute(["verify", PREFIX]) == 0
    assert [job.state for job in read_jobs(open_store(WORK))] == ["DONE"] * 3
    found = inspect(PREFIX, WORK)
    assert (found.state, found.problems) == ("complete", ())

    calls = len(server.calls)
    assert execute(arguments(recipe, server)) == 0 and len(server.calls) == calls
    assert execute(["refine", str(recipe), "--output", "gs://corpus/local", "--workers", "0", "--quiet"]) == 0
    ours, theirs = gcs.read("corpus", "web/"), gcs.read("corpus", "local/")
    assert digests(ours) == digests(theirs)
    assert not [name for name in ours if name.startswith("work/")]


# --- launchers ------------------------------------------------------------------------------------------------------


@pytest.fixture
def dataflow(
    finished: tuple[Files, FakeDataflow], gcs: FakeGcs, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeDataflow]:
    """Dataflow and storage as before that run; a job does its work by putting what the run's job had written.

    So its graph does not matter, and is small: Beam takes a second to build a real one.
    """
    written, _ = finished
    clear(gcs)
    for phase in PHASES:
        monkeypatch.setattr(graphs, phase, lambda pipeline, *_: pipeline | beam.Impulse())

    def put(job: FakeJob) -> None:
        phase = job.body["labels"]["refinery-phase"]
        for (bucket, name), data in written.items():
            folder = name.split("/")[1]
            own = {"clean": ("documents", "signatures", "rejects", "dead_letters"), "dedup": ("verdicts",)}.get(
                phase, ()
            )
            ours = bucket == "staging" and folder in (phase, *own)
            if ours or (phase == "shards" and folder in ("train", "validation", "removals")):
                gcs.put(bucket, name, data)

    with fake_dataflow() as server:
        server.plan = lambda job: ["PENDING", "RUNNING", "DONE"]
        server.work = put
        yield server


@pytest.fixture
def run(dataflow: FakeDataflow, recipe: Path) -> Callable[..., int]:
    return lambda *more: execute(arguments(recipe, dataflow, *more))


def check(finished: tuple[Files, FakeDataflow], gcs: FakeGcs, server: FakeDataflow, jobs: int = 3) -> None:
    """The corpus is that of the unbroken run, by so many jobs, three of which are DONE. The report alone differs: it
    says when the run started and ended."""
    corpus, found = (
        {place: data for place, data in each.items() if place[0] == "corpus" and not place[1].endswith(f"/{REPORT}")}
        for each in (finished[0], files(gcs))
    )
    assert corpus and found == corpus
    assert ("corpus", f"web/{REPORT}") in files(gcs)
    assert by_state(server)["DONE"] == 3 == len({job.name for job in server.jobs if job.state == "DONE"})
    assert len(server.jobs) == jobs


def test_killed_between_launch_and_record(
    dataflow: FakeDataflow,
    recipe: Path,
    run: Callable[..., int],
    finished: tuple[Files, FakeDataflow],
    gcs: FakeGcs,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """kill -9, for real, when the job is created and before the launcher knows it."""
    launched = threading.Event()

    def kill(call: Call) -> Fault | None:
        if call.kind != "create":
            return None
        launched.wait(10)
        process.kill()
        return Fault("reset")

    dataflow.after_call = kill
    process = subprocess.Popen([*COMMAND, *arguments(recipe, dataflow)], cwd=ROOT)
    launched.set()
    assert process.wait(120) == -signal.SIGKILL
    dataflow.after_call = lambda call: None
    assert dataflow.states()[0][1] == "PENDING" and read_jobs(open_store(WORK)) == []
    assert run() == 0
    assert f"job {dataflow.jobs[0].id} was launched before and is PENDING; waiting for it" in capsys.readouterr().out
    check(finished, gcs, dataflow)


@pytest.mark.parametrize("phase", sampled("phases that launchers of jobs die behind", PHASES, 1))
def test_killed_between_phases(
    dataflow: FakeDataflow,
    run: Callable[..., int],
    finished: tuple[Files, FakeDataflow],
    gcs: FakeGcs,
    monkeypatch: pytest.MonkeyPatch,
    phase: str,
) -> None:
    """The phase's job is done, its manifest is not yet written."""
    finish = phases.finish_phase

    def die(work: str, name: str, *rest: object) -> object:
        if name == phase:
            raise Killed
        return finish(work, name, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(refine_module, "finish_phase", die)
        with pytest.raises(Killed):
            run()
    assert len(dataflow.jobs) == PHASES.index(phase) + 1
    assert run() == 0
    check(finished, gcs, dataflow)


def test_a_job_that_fails_and_one_that_leaves_no_report(
    dataflow: FakeDataflow,
    run: Callable[..., int],
    finished: tuple[Files, FakeDataflow],
    gcs: FakeGcs,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work = dataflow.work

    def fail(job: FakeJob) -> None:
        if "-dedup-" in job.name:
            raise RuntimeError(
                "refinery.transforms.core.part_errors.UnreadablePart: gs://b/part: cannot be read [while running 'x']"
            )
        work(job)

    dataflow.work = fail
    assert run() == 1
    output = capsys.readouterr().err
    assert "2/3 dedup: the job ended as FAILED: https://console.cloud.google.com/dataflow/jobs/europe-west4/" in output
    assert "UnreadablePart: gs://b/part: cannot be read [while running 'x']" in output
    lines = [line for line in output.splitlines() if not line.startswith(("1/3 ", "2/3 "))]  # of progress
    assert len(lines) == 3
    dataflow.work = lambda job: None
    assert run() == 1
    output = capsys.readouterr().err
    assert "2/3 dedup: the job says that it is done, but gs://staging/work/dedup/report.json" in output
    assert inspect(PREFIX, WORK).state == "started"
    dataflow.work = work
    assert run() == 0
    assert [state for name, state in dataflow.states() if "-dedup-" in name] == ["FAILED", "DONE", "DONE"]
    dataflow.jobs.pop(2)  # that without a report
    check(finished, gcs, dataflow, jobs=4)


def test_two_commands_at_once_share_their_jobs(
    dataflow: FakeDataflow,
    run: Callable[..., int],
    finished: tuple[Files, FakeDataflow],
    gcs: FakeGcs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job goes on until both wait for it: one that ended while the other prepares its launch would be done again."""
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(run())) for _ in range(2)]
    waiting: set[tuple[int, int]] = set()  # thread, number of jobs so far

    def wait(seconds: float) -> None:
        waiting.add((threading.get_ident(), len(dataflow.jobs)))
        time.sleep(0.02)

    def end_when_both_wait(call: Call) -> None:
        last = dataflow.jobs[-1] if dataflow.jobs else None
        if call.kind == "get" and last and {(thread.ident, len(dataflow.jobs)) for thread in threads} <= waiting:
            last.plan = ["DONE"] if last.running else []

    dataflow.plan, dataflow.on_call = lambda job: ["RUNNING"], end_when_both_wait
    monkeypatch.setattr(PollingPolicy, "__init__", partialmethod(PollingPolicy.__init__, sleep=wait))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    check(finished, gcs, dataflow)
    assert len(read_jobs(open_store(WORK))) == 3


def test_ctrl_c_leaves_the_job_alone(
    dataflow: FakeDataflow, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    dataflow.plan = lambda job: ["PENDING", *["RUNNING"] * 100]
    gets: list[Call] = []

    def interrupt(call: Call) -> None:
        if call.kind == "get" and not gets.append(call) and len(gets) == 2:  # type: ignore[func-returns-value]
            os.kill(os.getpid(), signal.SIGINT)

    dataflow.on_call = interrupt
    assert run() == 130
    output = capsys.readouterr().err
    (job,) = dataflow.jobs
    assert job.running and f"the launcher stops; job {job.id} continues: https://console.cloud" in output
    assert f"gcloud dataflow jobs cancel {job.id} --region=europe-west4 --project=project" in output
    assert inspect(PREFIX, WORK).state == "running"


def test_a_local_run_reports_a_job_that_may_still_run(
    dataflow: FakeDataflow, run: Callable[..., int], recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataflow.on_call = lambda call: Fault("status", 403) if call.kind == "get" else None
    assert run() == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("refinery.pipelines.runners.runner.Runner.run", raise_killed)
        with pytest.raises(Killed):
            execute(["refine", str(recipe), "--output", PREFIX, "--work", WORK, "--workers", "0"])
    assert f"job {dataflow.jobs[0].id} was launched for this on Dataflow and may still run" in capsys.readouterr().out


def raise_killed(*_: object) -> None:
    raise Killed


@pytest.mark.parametrize("flag", ["--job_name=mine", "--template_location=gs://b/t", "--dry_run=True"])
def test_flags_that_have_no_place_in_a_run(inputs: Path, capsys: pytest.CaptureFixture[str], flag: str) -> None:
    command = ["refine", str(inputs / "recipe.yaml"), "--output", PREFIX, "--runner", "dataflow", flag]
    assert execute(command) == 2
    output = capsys.readouterr().err
    assert output.startswith(f"refinery: {flag.partition('=')[0]}: ") and output.count("\n") == 1


def test_waves_are_hours_of_work_elsewhere_unless_the_recipe_says_otherwise(inputs: Path) -> None:
    tasks = [ReadTask(path=str(i), format="jsonl", source="s", file_index=i, size=1 << 30) for i in range(1500)]
    flink = Runner("FlinkRunner", flags=("--parallelism=8",)).vcpus  # 200 GB a wave
    dataflow = Runner("DataflowRunner", flags=("--max_num_workers=10", "--machine_type=n2-standard-4")).vcpus
    for settings, waves in (
        ([], (188, 9, 2)),
        (["run.wave_files=500"], (188, 188, 188)),
        (["run.wave_bytes=1"], (1500, 1500, 1500)),
    ):
        recipe = load_recipe(str(inputs / "recipe.yaml"), ["run={}", *settings])
        places = (Runner("local").vcpus, flink, dataflow)
        assert tuple(len(cut_waves(tasks, *wave_limits(recipe.run, vcpus))) for vcpus in places) == waves
