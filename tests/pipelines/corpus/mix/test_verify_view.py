"""What `verify` and `inspect` say of views that were damaged or forged, and what other commands say of a view."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import MANIFEST, seal
from refinery.loader.format.selection import SELECTION
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.mix.make_view import make_view
from refinery.pipelines.corpus.mix.recipe import load_mix
from refinery.pipelines.corpus.mix.verify_view import verify_view
from refinery.pipelines.progress.work import Work
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.corpus_factory import file_entry
from tests.mix_factory import mix_corpus, write_recipe
from tests.plain_manifest import manifest_of
from tests.shared import shared

DOMAINS = [
    {"name": "en", "parts": ["a"], "where": "language == 'en'", "times": 2},
    {"name": "all", "parts": ["a/web"]},
]


def fill(folder: Path) -> None:
    a = mix_corpus(folder / "a", 5, {("train", "web"): [80, 30], ("validation", "web"): [8]})
    recipe = write_recipe(folder / "r.yaml", {"a": a}, DOMAINS)
    make_view(load_mix(str(recipe)), str(folder / "view"), Work())


@pytest.fixture
def view(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to damage."""
    folder = shared(tmp_path_factory, "view-to-verify", fill)
    for name in ("a", "view"):
        shutil.copytree(folder / name, tmp_path / name)
    return tmp_path / "view"


def edit(view: Path, change: Callable[[dict[str, Any]], None] = lambda payload: None) -> None:
    """Seal the manifest again, with the selection as it is now."""
    payload = manifest_of(view)
    payload["selection"] = file_entry(view, SELECTION)
    change(payload)
    (view / MANIFEST).write_bytes(seal(payload))


def test_a_sound_view(view: Path) -> None:
    report = verify_view(str(view))
    assert report.failures == [] and report.segments == 8
    assert report.summary_lines()[-1] == "all checks passed"


def other_documents(view: Path) -> None:
    """A gap becomes longer and a run starts elsewhere, so that other documents are named."""
    data = bytearray((view / SELECTION).read_bytes())
    segments, blocks = (int.from_bytes(data[k : k + 8], "little") for k in (16, 24))
    at = 64 + 40 * segments + 8 * blocks
    data[at : at + 8] = (int.from_bytes(data[at : at + 8], "little") + 1).to_bytes(8, "little")
    (view / SELECTION).write_bytes(data)
    edit(view)


def another_rule(view: Path) -> None:
    edit(view, lambda payload: payload["recipe"]["domains"][0].update(where="language == 'de'"))


def other_counts(view: Path) -> None:
    def change(payload: dict[str, Any]) -> None:
        split = payload["domains"][1]["splits"]["train"]
        split["times"][0]["tokens"] += 1
        split["tokens"] += 1
        payload["totals"]["tokens"] += 1

    edit(view, change)


def a_bit(view: Path) -> None:
    data = bytearray((view / SELECTION).read_bytes())
    data[-20] ^= 1
    (view / SELECTION).write_bytes(data)


def no_selection(view: Path) -> None:
    (view / SELECTION).unlink()


def another_corpus(view: Path) -> None:
    shutil.rmtree(view.parent / "a")
    mix_corpus(view.parent / "a", 6, {("train", "web"): [80, 30]})


def outside(view: Path) -> None:
    edit(view, lambda payload: payload["domains"][1].update(parts=[{"corpus": 0, "domain": "code"}]))


def broken_seal(view: Path) -> None:
    path = view / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"a view"', b'"b view"'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (other_documents, "whole documents expected"),
        (another_rule, "expected from the recipe"),
        (other_counts, "tokens in turn 1 found"),
        (a_bit, "sha256"),
        (no_selection, "selection.bin"),
        (another_corpus, "this is another corpus or version"),
        (outside, "from a split or domain that its own does not draw from"),
        (broken_seal, "damaged or edited"),
    ],
)
def test_damage(view: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(view)
    report = verify_view(str(view))
    assert any(said in failure for failure in report.failures), report.failures


def test_a_plan_of_another_shape(view: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payload = manifest_of(view)
    for bins in ([{"from": 1}], [{"from": {}, "to": 2, "documents": 1, "tokens": 1, "delivered_tokens": 1}], 7):
        payload["plan"]["en"] = {"bins": bins, "times": [1]}
        (view / MANIFEST).write_bytes(seal(payload))
        assert execute(["inspect", str(view)]) is ExitCode.FAILED
        assert "damaged: its plan is not as a run writes" in capsys.readouterr().out


def test_commands(view: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert execute(["inspect", str(view), "--json"]) is ExitCode.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "complete" and found["totals"] == manifest_of(view)["totals"]
    assert execute(["inspect", str(view)]) is ExitCode.DONE
    assert "en      train" in capsys.readouterr().out
    for words in (["report"], ["show", "--id", "0" * 32], ["blend"], ["export", "--format", "jsonl", "--output", "e"]):
        assert execute([words[0], str(view), *words[1:]]) is ExitCode.USAGE
        assert "a view, which has no tokens or documents of its own" in capsys.readouterr().err
    (view.parent / "a").rename(view.parent / "moved")
    assert execute(["inspect", str(view)]) is ExitCode.FAILED
    assert "restore the corpus" in capsys.readouterr().out
    assert execute(["verify", str(view)]) is ExitCode.FAILED


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ({"where": "qualty > 0.3"}, "quality"),
        ({"upsample": {"column": "url", "bins": [{"times": 2}]}}, "column 'url' given"),
        ({"upsample": {"column": "quality", "bins": [{"below": 2, "times": 2}]}}, "the last without `below`"),
        ({"parts": ["b"]}, "corpora are a"),
        ({"parts": ["a/books"]}, "domains of 'a' are web"),
        ({"parts": ["a", "a/web"]}, "is named before"),
        ({"times": 0}, "no training document"),
        ({"per_host": {"documents": 3, "tokens": 5}}, "either documents or tokens"),
        ({"times": 2000}, "1000"),
        ({"name": "No"}, "name"),
    ],
)
def test_recipes_that_cannot_be(
    view: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, domain: dict[str, Any], said: str
) -> None:
    recipe = write_recipe(tmp_path / "r.yaml", {"a": tmp_path / "a"}, [{"name": "d", "parts": ["a"], **domain}])
    assert execute(["mix", str(recipe), "--output", str(tmp_path / "new")]) is ExitCode.USAGE
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
