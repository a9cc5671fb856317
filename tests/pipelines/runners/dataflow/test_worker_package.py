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

from refinery.pipelines.runners.dataflow.worker_package import (
    COMPILE_ARGS,
    PACKAGE_FILE,
    PYTHON,
    build_package,
    package_digest,
    pinned_requirements,
    worker_files,
)
from refinery.pipelines.runners.same_code import CheckWorkers, StaleWorker, own_state, refuse_difference
from tests.beam import run_and_collect
from tests.pipelines.dataflow_graphs import PHASES, demo_recipe, dry_run, no_credentials, phase_build, steps
from tests.pipelines.inputs import ROOT
from tests.quick_compiler import quick_compiler
from tests.sampling import one_commit_in_four

# Of loader/ only what writes and reads the format, rows packed by best fit with their kernel, and headers that all
# kernels share; the rest is for training.
STORAGE = {
    "arguments",
    "errors",
    "format",
    "native",
    "order",
    "packing",
    "read",
    "storage",
}

# A user's own stage, in a module and in a package; it reads a published corpus, so the loader's stream comes along.
OWN = {
    "my_filters.py": b"from my_words.lists import COMMON\nLIMIT = len(COMMON)\n",
    "my_words/__init__.py": b"",
    "my_words/lists.py": b"from refinery.loader.order import order\nCOMMON = [order.__name__]\n",
}


def entries_of(package: bytes) -> dict[str, tarfile.TarInfo]:
    """Name below the package's own folder -> entry."""
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return {entry.name.partition("/")[2]: entry for entry in archive.getmembers()}


def test_the_package_holds_what_workers_run_and_nothing_of_training() -> None:
    entries = entries_of(build_package())
    assert set(entries) == {*worker_files(), "setup.py", "PKG-INFO"}
    assert {name.split("/")[0] for name in entries} == {"refinery", "setup.py", "PKG-INFO"}
    assert {Path(name).suffix for name in entries} == {".py", ".c", ".h", ".npy", ""}
    parts = [name.split("/") for name in entries]
    assert {part[1] for part in parts if len(part) > 2} == {"pipelines", "transforms", "loader"}
    assert {part[2].removesuffix(".py") for part in parts if part[1:2] == ["loader"]} == {"__init__", *STORAGE}
    for name in (
        "refinery/__init__.py",
        "refinery/loader/format/manifest.py",
        "refinery/loader/storage/gcs_store.py",
        "refinery/pipelines/lanes/web.py",
        "refinery/transforms/native/minhash.c",
        "refinery/transforms/read/sources.py",
    ):
        assert name in entries
    headers = (ROOT / "refinery").rglob("*.h")
    assert {path.relative_to(ROOT).as_posix() for path in headers} <= set(entries)
    kernels = {name for name in entries if name.startswith("refinery/loader/native") and name.endswith(".c")}
    assert kernels == {"refinery/loader/native/best_fit.c"}
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname, entry.mode) for entry in entries.values()} == {
        (0, 0, 0, "", 0o644)
    }
    assert all(entry.isreg() for entry in entries.values())  # no link of the checkout


@one_commit_in_four
def test_modules_of_the_user_travel_and_count() -> None:
    entries = entries_of(build_package(OWN))
    assert set(entries) - set(entries_of(build_package())) >= {*OWN, "refinery/loader/order/order.py"}
    digests = [package_digest(), package_digest(OWN), package_digest({**OWN, "my_filters.py": b"LIMIT = 2\n"})]
    assert len(set(digests)) == 3
    assert digests[0] == package_digest({})
    assert digests[1] == package_digest(dict(reversed(OWN.items())))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["my filters.py"], "is named like filters.py"),
        (["my_filters.yaml"], "is named like filters.py"),
        (["../my_filters.py"], "is named like filters.py"),
        (["/my_filters.py"], "is named like filters.py"),
        (["refinery/transforms/filter/url.py"], "refinery is another module's name"),
        (["setup.py"], "setup is another module's name"),
        (["html.py"], "html is another module's name"),
        (["words/lists.py"], "words/__init__.py is missing"),
        (["words/de/__init__.py", "words/de/lists.py"], "words/__init__.py is missing"),
        (["words/__init__.py", "words.py"], "words.py is there, too"),
    ],
)
def test_names_that_no_worker_could_import_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        worker_files(dict.fromkeys(names, b""))


@one_commit_in_four
def test_the_same_sources_give_the_same_bytes() -> None:
    command = (
        "import sys; from refinery.pipelines.runners.dataflow.worker_package import build_package; "
        "sys.stdout.buffer.write(build_package())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    other = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert hashlib.sha256(other.stdout).hexdigest() == hashlib.sha256(build_package()).hexdigest()


def test_workers_get_the_libraries_of_the_launcher() -> None:
    pins = pinned_requirements()
    given = (line.partition("==") for line in (ROOT / "requirements.txt").read_text().lower().splitlines())
    lines = {re.sub(r"[._]", "-", name) + sign + version for name, sign, version in given}
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
import my_filters
import refinery.pipelines.runners.same_code
from refinery.transforms.native import minhash
print(json.dumps({
    "files": {name: module.__file__ for name, module in sys.modules.items()
              if name.split(".")[0] in ("refinery", "my_filters", "my_words")},
    "limit": my_filters.LIMIT,
    "foreign": sorted({"torch", "pytest", "hypothesis"} & set(sys.modules)),
    "state": refinery.pipelines.runners.same_code.worker_state(),
}))
try:
    import refinery.loader.stream.stream
except ModuleNotFoundError:
    sys.exit(0)
sys.exit("refinery.loader.stream.stream is there")
"""


@one_commit_in_four
def test_the_installed_package_runs_every_step_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip compiles and installs it into an empty folder, without a network; an interpreter that sees nothing else of
    the project then loads the functions of all three phases, and the user's own modules."""
    no_credentials(monkeypatch)
    package, target, payloads = tmp_path / PACKAGE_FILE, tmp_path / "site", tmp_path / "payloads"
    package.write_bytes(build_package(OWN))
    quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-compile"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    command = [sys.executable, "-m", "pip", "install", *quiet, *offline, str(package)]
    subprocess.run(command, check=True, cwd=tmp_path, env=os.environ | quick_compiler(tmp_path))

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
    said = json.loads(done.stdout)
    assert not [file for file in said["files"].values() if not file.startswith(f"{target}/")]
    assert {
        "refinery.transforms.read.sources",
        "refinery.transforms.write.shards",
        "refinery.loader.format.manifest",
        "my_filters",
        "my_words.lists",
    } <= set(said["files"])
    assert said["limit"] == 1
    assert said["foreign"] == []
    assert said["state"] == own_state()


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
