"""The archive and the wheel that `make wheel` makes: what is in them, and that the loader runs from the wheel alone."""

import ast
import importlib.metadata
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from refinery import DISTRIBUTION
from refinery.pipelines.runners.dataflow.worker_package import PYTHON, pinned_requirements
from tests.corpus_factory import build_corpus
from tests.quick_compiler import quick_compiler
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

ROOT = Path(__file__).parents[1]
PACKAGES = ("loader", "transforms", "pipelines")  # links to the folders of these names in refinery/
PARTS = ("setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md", "requirements.txt")
NOT_OURS = shutil.ignore_patterns("*.so", "__pycache__", "*.pyc")
VERSIONS = ("3.11", "3.12", "3.13")


@cache
def settings() -> dict[str, ast.expr]:
    """Arguments of setup.py's call of setup()."""
    calls = [node for node in ast.walk(ast.parse((ROOT / "setup.py").read_bytes())) if isinstance(node, ast.Call)]
    (call,) = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "setup"]
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def build(folder: Path, kind: str, into: Path) -> Path:
    """What setuptools makes of a folder: an "sdist" or a "wheel"."""
    script = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    environment = os.environ | quick_compiler(folder.parent)
    command = [sys.executable, "-c", script, str(into)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    (found,) = into.iterdir()
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, links included, without what was compiled there."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("refinery", "recipes", "tests"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=NOT_OURS)
    for name in PARTS:
        shutil.copy(ROOT / name, folder)
    for name in PACKAGES:
        (folder / name).symlink_to(Path("refinery", name))
    return folder


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(checkout, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the archive, which therefore is complete."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return build(top, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as pip lays it out."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)  # noqa: S202 - our own
    return folder


def source_files() -> set[str]:
    """Every file of the import package, as a name below its parent."""
    kinds = (".py", ".pyi", ".c", ".h", ".npy", ".npz", ".typed", ".css", ".js", ".txt")
    files = [path for path in (ROOT / "refinery").rglob("*") if path.suffix in kinds]
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_archive_holds_every_source_file_once_and_no_test(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        entries = archive.getmembers()
    names = Counter(entry.name.partition("/")[2] for entry in entries)
    assert set(names.values()) == {1}
    assert all(entry.isreg() or entry.isdir() for entry in entries)
    assert {name for name in names if name.startswith("refinery/") and Path(name).suffix} == source_files()
    tops = {name.split("/")[0] for name in names} - {"", "PKG-INFO", "setup.cfg"}
    assert tops == {*PARTS, "refinery", "recipes", f"{DISTRIBUTION.replace('-', '_')}.egg-info"}
    assert {name for name in names if name.startswith("recipes/") and Path(name).suffix} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.yaml")
    }


def test_the_wheel_holds_every_source_file_and_a_module_for_each_kernel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    compiled = {name for name in names if name.endswith(".so")}
    assert {name.split(".")[0] + ".c" for name in compiled} == {name for name in names if name.endswith(".c")}
    rest = {name for name in names if not name.split("/")[0].endswith(".dist-info")} - compiled
    assert rest == source_files()


def test_the_image_is_built_from_the_same_files(tmp_path: Path) -> None:
    """What the Dockerfile copies, laid out by its COPY lines."""
    for line in re.findall(r"^COPY (?!--from)(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
        *sources, target = line.split()
        target = target.lstrip("/")  # of the launcher: here everything is below one folder
        for source in [path for pattern in sources for path in ROOT.glob(pattern)]:
            if source.is_dir():
                shutil.copytree(source, tmp_path / target, ignore=NOT_OURS)
            else:
                (tmp_path / target).mkdir(parents=True, exist_ok=True)
                shutil.copy(source, tmp_path / target)
    found = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "refinery").rglob("*") if path.is_file()}
    assert found == source_files()


def test_one_name_and_one_range_of_versions(installed: Path) -> None:
    (found,) = importlib.metadata.distributions(path=[str(installed)])
    assert found.metadata["Name"] == DISTRIBUTION == ast.literal_eval(settings()["name"])
    assert found.metadata["Requires-Python"].replace(" ", "") in (PYTHON, ",".join(reversed(PYTHON.split(","))))
    assert [point.value for point in found.entry_points] == ["refinery.__main__:main"]
    named = [text.rpartition(" ")[2] for text in found.metadata.get_all("Classifier", []) if ":: Python ::" in text]
    assert named == list(VERSIONS)
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert wheels["build"] == [f"cp{version.replace('.', '')}-*" for version in VERSIONS]


def test_users_install_no_tool_of_ours(installed: Path) -> None:
    (found,) = importlib.metadata.distributions(path=[str(installed)])
    needs = [Requirement(line) for line in found.requires or ()]

    def names(extra: str) -> set[str]:
        wanted = [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
        return {need.name.lower() for need in wanted}

    base, pipeline, tools = names(""), names("pipeline"), names("dev") - names("")
    assert base == {"google-cloud-storage", "google-crc32c", "numpy", "pyarrow"}
    assert "apache-beam" in pipeline and {"mypy", "pytest", "ruff"} <= tools
    assert not tools & pipeline
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "requirements.txt").read_text().splitlines()}
    assert not tools & (pinned | {pin.partition("==")[0] for pin in pinned_requirements()})


ALONE = """
import json, runpy, sys
sys.path += json.loads(sys.argv.pop(1))
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_loader_runs_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    """An interpreter that sees the wheel and the libraries, but nothing of the checkout."""
    corpus = build_corpus(tmp_path / "corpus")
    path = json.dumps([str(installed), *site.getsitepackages()])
    script = str(ROOT / "tests" / "try_wheel.py")
    command = [sys.executable, "-I", "-S", "-c", ALONE, path, script, str(corpus)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {name.replace(".", "/") + ".c" for name in said["kernels"]} == {
        n for n in source_files() if n.endswith(".c")
    }
    assert all(file.startswith(f"{installed}/refinery/") for file in said["kernels"].values())


def test_a_command_without_the_funnels_libraries_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    """Beside the wheel there is everything that is installed here, but Beam and a JSON library."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for path in (path for folder in site.getsitepackages() for path in Path(folder).iterdir()):
        if path.name not in ("apache_beam", "orjson"):
            (libraries / path.name).symlink_to(path)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "manifest.json").write_text("{}")  # otherwise there is nothing to verify
    script = (
        f"import sys; sys.path += [{str(installed)!r}, {str(libraries)!r}]; sys.argv = ['refinery', 'verify', 'x']; "
    )
    script += "from refinery.__main__ import main; main()"
    command = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={})
    needed = "pip install 'corpus-refinery[pipeline]'"
    assert done.stderr == f"refinery: orjson is not installed; only the loader is. Commands need {needed}\n"
    assert done.returncode == 1


CONSUMER = """
from refinery.loader import TokenStream
reveal_type(TokenStream("corpus").state_dict())
TokenStream("corpus", batch_size="8")
"""


def test_a_users_type_checker_sees_our_types(installed: Path, tmp_path: Path) -> None:
    """mypy reads an installed package only where it finds py.typed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "refinery.pth").write_text(f"{installed}\n")
    (tmp_path / "train.py").write_text(CONSUMER)
    quick = ["--strict", "--ignore-missing-imports", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    command = [sys.executable, "-m", "mypy", *quick, "--python-executable", f"{tmp_path}/env/bin/python", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    revealed, wrong = done.stdout.splitlines()
    assert re.search(r'Revealed type is "(builtins\.)?dict\[(builtins\.)?str, ', revealed)
    assert '"batch_size" to "TokenStream" has incompatible type "str"; expected "int | Sequence[BatchStage]"' in wrong
