"""The package for workers without an image: its contents, its bytes, and that it alone runs every step of a job."""

import hashlib
import io
import json
import os
import re
import site
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from apache_beam.portability.api import beam_runner_api_pb2 as api

from pipelines.same_code import CheckWorkers, StaleWorker, own_state, refuse_difference
from pipelines.worker_package import (
    COMPILE_ARGS,
    PACKAGE_FILE,
    PYTHON,
    build_package,
    package_digest,
    pinned_requirements,
    worker_files,
)
from tests.beam import run_and_collect
from tests.pipelines.dataflow_graphs import PHASES, demo_recipe, dry_run, no_credentials, phase_build, steps
from tests.pipelines.inputs import ROOT

# Of loader/ only what writes and reads the format; these are for training.
TRAINING = (
    *("assemble", "cache", "corpus", "fill_in_middle", "masks", "mixing", "order", "prefetch", "samples", "schedule"),
    *("simulate", "source", "stream", "telemetry", "torch_adapter", "usage"),
)


def test_the_package_holds_what_workers_run_and_nothing_of_training() -> None:
    with tarfile.open(fileobj=io.BytesIO(build_package())) as archive:
        entries = {entry.name.partition("/")[2]: entry for entry in archive.getmembers()}
    assert set(entries) == {*worker_files(), "setup.py", "PKG-INFO"}
    assert {name.split("/")[0] for name in entries} == {"pipelines", "transforms", "loader", "setup.py", "PKG-INFO"}
    assert {Path(name).suffix for name in entries} == {".py", ".c", ".h", ""}
    loader = {name.removeprefix("loader/") for name in entries if name.startswith("loader/")}
    assert {"__init__.py", "format.py", "indexed.py", "storage.py", "gcs_store.py"} <= loader
    assert not loader & {f"{name}.py" for name in TRAINING}
    assert {name for name in loader if "/" in name} == {"native/include/kernel.h"}  # no kernels of training
    for name in ("native/minhash.c", "native/include/words.h", "read.py"):
        assert f"transforms/{name}" in entries
    assert "pipelines/web.py" in entries
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname, entry.mode) for entry in entries.values()} == {
        (0, 0, 0, "", 0o644)
    }


def test_the_same_sources_give_the_same_bytes() -> None:
    command = "import sys; from pipelines.worker_package import build_package; sys.stdout.buffer.write(build_package())"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    other = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert hashlib.sha256(other.stdout).hexdigest() == hashlib.sha256(build_package()).hexdigest()


def test_workers_get_the_libraries_of_the_launcher() -> None:
    pins = pinned_requirements()
    lines = (ROOT / "requirements.txt").read_text().lower().replace("_", "-").splitlines()
    names = [pin.split("==")[0] for pin in pins]
    assert names == sorted(set(names))
    assert not [pin for pin in pins if pin not in lines]
    assert {"numpy", "pyarrow", "resiliparse", "trafilatura", "fasttext-predict", "tokenizers", "justext"} <= set(names)
    assert not set(names) & {"apache-beam", "torch", "pytest", "google-cloud-spanner"}


def test_the_package_compiles_as_the_project_does() -> None:
    text = (ROOT / "setup.py").read_text()
    assert json.dumps(COMPILE_ARGS) in text
    assert f'python_requires="{PYTHON}"' in text


ALONE = """
import json, sys
sys.path += json.loads(sys.argv[1])
from pathlib import Path
from apache_beam.internal import pickler
for payload in Path(sys.argv[2]).read_bytes().split():
    pickler.loads(payload)
import pipelines.same_code
from transforms.native import minhash
print(json.dumps({
    "files": {name: module.__file__ for name, module in sys.modules.items()
              if name.split(".")[0] in ("pipelines", "transforms", "loader")},
    "foreign": sorted({"torch", "pytest", "hypothesis"} & set(sys.modules)),
    "state": pipelines.same_code.worker_state(),
}))
try:
    import loader.stream
except ModuleNotFoundError:
    sys.exit(0)
sys.exit("loader.stream is there")
"""


def test_the_installed_package_runs_every_step_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip compiles and installs it into an empty folder, without a network; an interpreter that sees nothing else of
    the project then loads the functions of all three phases."""
    no_credentials(monkeypatch)
    package, target, payloads = tmp_path / PACKAGE_FILE, tmp_path / "site", tmp_path / "payloads"
    package.write_bytes(build_package())
    quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, *offline, str(package)], check=True, cwd=tmp_path)

    found = []
    for phase in PHASES:
        graph = dry_run(phase_build(phase, demo_recipe(), 3, tmp_path)).proto_pipeline
        pardos = [step for step in steps(graph).values() if step.spec.urn == "beam:transform:pardo:v1"]
        found += [api.ParDoPayload.FromString(step.spec.payload).do_fn.payload for step in pardos]
    assert len(found) > 60
    payloads.write_bytes(b"\n".join(found))

    path = json.dumps([str(target), *site.getsitepackages()])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "ignore", "-c", ALONE, path, str(payloads)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert not [file for file in told["files"].values() if not file.startswith(f"{target}/")]
    assert {"transforms.read", "transforms.write_shards", "loader.format"} <= set(told["files"])
    assert told["foreign"] == []
    assert told["state"] == own_state()


def test_a_worker_with_the_same_code_passes() -> None:
    assert run_and_collect(lambda pipeline: [pipeline | CheckWorkers()]) == [[]]


def test_a_worker_with_other_code_fails_the_job() -> None:
    launcher = {**own_state(), "code": "0" * 64}
    message = rf"code {package_digest()[:20]} on the worker, {'0' * 20} where it was launched\. Build the image"
    with pytest.raises(Exception, match=message):
        run_and_collect(lambda pipeline: [pipeline | CheckWorkers(launcher)])


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        ({"code": "a", "numpy": "2.0"}, r"numpy 2.0 on the worker, 2.4 where it was launched\. Build"),
        ({"code": "a"}, "numpy missing on the worker, 2.4 where"),
        ({"code": "b", "numpy": "1"}, "code b on the worker, a where it was launched; numpy 1 on the worker"),
    ],
)
def test_differences_are_named(worker: dict[str, str], message: str) -> None:
    refuse_difference({"code": "a", "numpy": "2.4"}, {"code": "a", "numpy": "2.4", "more": "x"})
    with pytest.raises(StaleWorker, match=message):
        refuse_difference({"code": "a", "numpy": "2.4"}, worker)
    assert re.fullmatch("[0-9a-f]{64}", own_state()["code"])
