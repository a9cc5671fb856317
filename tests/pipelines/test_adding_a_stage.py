"""The steps of "A filter" in docs/extending/, followed literally: one file, one line of a recipe."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines import refine
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe import user_stages
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.runners.dataflow.worker_package import build_package
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml
from tests.docs.blocks import subject_text
from tests.pipelines.inputs import ROOT, run
from tests.sampling import one_commit_in_four

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# A filter\n") :]
FILE = re.search(r"```python\n(.*?)```", SECTION, re.S)
LINE = re.search(r"^stages: .*$", SECTION, re.M)
TEST = re.search(r"\*\*3\. Its test.*?```python\n(.*?)```", SECTION, re.S)
assert FILE and LINE and TEST


def follow(folder: Path, inputs: Path, line: str) -> Path:
    """Step 1 and step 2, in `folder`: the file, and a copy of the demo's recipe with the line, for one file of the
    crawl. Returns the recipe."""
    recipe = folder / "my.yaml"
    text = (inputs / "recipe.yaml").read_text()
    recipe.write_text(f"{text.replace('crawl-*', 'crawl-00000').replace('wave_files: 2', 'wave_files: 9')}\n{line}\n")
    return recipe


@pytest.fixture
def mine(tmp_path: Path, inputs: Path) -> Path:
    """A user's own folder: a module beside the recipe."""
    (tmp_path / "digits.py").write_text(FILE[1])
    yield follow(tmp_path, inputs, LINE[0])
    sys.modules.pop("digits", None)
    sys.path[:] = [place for place in sys.path if place != str(tmp_path)]


def check(manifest: dict[str, Any]) -> None:
    """The stage is in the funnel behind its place, and its reason in the manifest."""
    stages = [stage["name"] for stage in manifest["stages"]]
    assert stages[stages.index("heuristics") + 1] == "digits"
    rows = [row for row in manifest["funnel"] if row["stage"] == "digits"]
    assert sum(row["dropped"]["digit-ratio"]["documents"] for row in rows) > 0
    assert sum(row["kept"]["documents"] for row in rows) > 0
    assert manifest["recipe"]["digits"] == {"max_ratio": 0.02}


def shards(corpus: Path) -> dict[str, bytes]:
    return {path.relative_to(corpus).as_posix(): path.read_bytes() for path in corpus.glob("*/*/shard-*")}


@one_commit_in_four
def test_a_stage_of_this_tree(tmp_path: Path, inputs: Path) -> None:
    """In a copy of the tree, with its bytecode: nothing is edited but the one new file."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "refinery", tree / "refinery")
    (tree / "refinery" / "transforms" / "filter" / "digits.py").write_text(FILE[1])
    recipe = follow(tmp_path, inputs, LINE[0].replace("digits:DIGITS", "refinery.transforms.filter.digits:DIGITS"))
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-P", "-m", "refinery"]
    words = [*command, "refine", str(recipe), "--output", str(tmp_path / "out"), "--workers", "0", "--quiet"]
    subprocess.run(words, cwd=inputs, env=environment, check=True, capture_output=True)
    check(json.loads((tmp_path / "out" / "manifest.json").read_text()))


@one_commit_in_four
def test_a_stage_of_ones_own_on_every_runner_here(mine: Path, inputs: Path, tmp_path: Path) -> None:
    """Processes of the local runner, this process, and DirectRunner give the same bytes."""
    run("refine", mine, "--output", tmp_path / "pool", "--workers", 1)
    run("refine", mine, "--output", tmp_path / "direct", "--runner", "DirectRunner")
    refine(mine, tmp_path / "here", workers=0)
    for name in ("pool", "here", "direct"):
        check(json.loads((tmp_path / name / "manifest.json").read_text()))
    assert shards(tmp_path / "pool") == shards(tmp_path / "here") == shards(tmp_path / "direct") != {}
    assert execute(["verify", str(tmp_path / "pool")]) == 0


def test_it_travels_in_the_worker_package(mine: Path) -> None:
    sources = load_recipe(str(mine)).CODE.sources()
    assert sources == {"digits.py": FILE[1].encode()}
    with tarfile.open(fileobj=io.BytesIO(build_package(sources))) as archive:
        names = {name.partition("/")[2]: name for name in archive.getnames()}
        assert archive.extractfile(names["digits.py"]).read() == FILE[1].encode()
        assert b"py_modules=['digits']" in archive.extractfile(names["setup.py"]).read()


@one_commit_in_four
def test_its_test_passes(tmp_path: Path) -> None:
    (tmp_path / "digits.py").write_text(FILE[1])
    (tmp_path / "test_digits.py").write_text(TEST[1])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_digits.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "15 passed" in done.stdout, done.stdout + done.stderr


def test_its_page_and_its_schema(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["stages", "--recipe", str(mine), "--markdown"]) == 0
    page = capsys.readouterr().out
    section = page[page.index("## digits") :].partition("\n## ")[0]
    assert "| `max_ratio` | `0.3` | a number from 0 to 1 | share of a text's characters that may be digits |" in section
    assert "`digit-ratio`" in section and "Drop documents that are mostly digits." in section
    assert execute(["stages", "digits", "--recipe", str(mine)]) == 0
    assert "digits  version 1, phase clean (digits:DIGITS)" in capsys.readouterr().out
    assert execute(["stages", "--recipe", str(mine), "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$defs"]["DigitsParams"]["properties"]["max_ratio"]["maximum"] == 1


def test_its_code_is_in_the_fingerprint(mine: Path) -> None:
    before = phase_fingerprints(load_recipe(str(mine)), [])
    (mine.parent / "digits.py").write_text(FILE[1] + "\n# another comment\n")
    sys.modules.pop("digits")
    assert phase_fingerprints(load_recipe(str(mine)), [])["clean"] != before["clean"]


PROBLEMS = {
    "{use: digits:DIGITS, after: heuristics, max_ratio: 2}": "stages[0].max_ratio: 2 given, a number from 0 to",
    "{use: digits:DIGITS, after: heuristics, max_rato: 1}": "stages[0].max_rato: unknown key, did you mean max_ratio?",
    "{use: digits:DIGIT, after: heuristics}": "did you mean DIGITS?",
    "{use: nothing:X, after: heuristics}": "stages[0].use: module 'nothing' found neither in",
    "{use: digits:DIGITS, after: encode}": "stages[0].after: 'encode' given, extract, secrets, url, language, "
    "heuristics, opt-out, page-license, substrings, lines",
    "{use: digits:DIGITS}": "stages[0].after: nothing given",
    "{use: digits, after: url}": "stages[0].use: 'digits' given, module:NAME is allowed",
    "{use: digits:judge_digits, after: url}": "the module has no declaration of a stage by that name",
}


@pytest.mark.parametrize(("entry", "problem"), PROBLEMS.items())
def test_a_mistake_is_one_line(mine: Path, entry: str, problem: str) -> None:
    text = mine.read_text().replace(LINE[0], f"stages: [{entry}]")
    mine.write_text(re.sub(r"(digits:\w+)", r'"\1"', text))
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(mine))
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_set_reaches_its_parameters(mine: Path) -> None:
    recipe = load_recipe(str(mine), ["digits.max_ratio=0.5"])
    assert recipe.plain()["digits"] == {"max_ratio": 0.5}
    assert load_yaml(LINE[0], "line")["stages"][0]["max_ratio"] == 0.02


@one_commit_in_four
def test_the_example_that_the_command_writes_passes_its_own_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["stages", "new", "too-many-digits", "--folder", str(tmp_path)]) == 0
    assert 'use: "too_many_digits:TOO_MANY_DIGITS"' in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_too_many_digits.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "16 passed" in done.stdout, done.stdout + done.stderr
    assert execute(["stages", "new", "too-many-digits", "--folder", str(tmp_path)]) == 1  # nothing is overwritten
    assert execute(["stages", "new", "Digits!", "--folder", str(tmp_path)]) == 2


def test_an_entry_point_is_named_alone(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an installed package offers in the group refinery.stages."""
    point = EntryPoint(name="many-digits", value="digits:DIGITS", group="refinery.stages")
    monkeypatch.setattr(user_stages, "entry_points", lambda group: [point] if group == point.group else [])
    mine.write_text(mine.read_text().replace("digits:DIGITS", "many-digits"))
    recipe = load_recipe(str(mine))
    assert recipe.LANE.funnel[6] == "digits" and recipe.plain()["digits"] == {"max_ratio": 0.02}
    mine.write_text(mine.read_text().replace("many-digits", "few-digits"))
    with pytest.raises(RecipeError, match=r"use: 'few-digits' given, module:NAME or one of many-digits is allowed"):
        load_recipe(str(mine))


def test_what_a_module_imports_beside_it_travels_too(mine: Path) -> None:
    folder = mine.parent
    (folder / "limits_of_mine").mkdir()
    (folder / "limits_of_mine" / "__init__.py").write_text("")
    (folder / "limits_of_mine" / "ratios.py").write_text("HIGH = 0.3\n")
    (folder / "unrelated.py").write_text("raise SystemExit\n")
    (folder / "digits.py").write_text(f"{FILE[1]}\nfrom limits_of_mine.ratios import HIGH as HIGH\n")
    found = load_recipe(str(mine)).CODE
    assert set(found.sources()) == {"digits.py", "limits_of_mine/__init__.py", "limits_of_mine/ratios.py"}
    before = found.digest()
    (folder / "limits_of_mine" / "ratios.py").write_text("HIGH = 0.4\n")
    assert found.digest() != before
    for name in ("limits_of_mine", "limits_of_mine.ratios"):
        sys.modules.pop(name, None)
