"""docs/pictures: the drawings are what docs/site/pictures.py makes, from the code and the counts of the demo."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from refinery.pipelines.lanes.web import LANE
from tests.docs.blocks import PAGES, ROOT
from tests.sampling import ALL

PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 300_000  # of all pictures together


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "site"))
        return importlib.import_module("pictures")


def test_the_drawings_are_those_of_the_script(script: ModuleType) -> None:
    drawings = script.drawings()
    assert {name: (PICTURES / name).read_text() for name in drawings} == drawings, "run `make pictures`"
    assert {path.name for path in PICTURES.glob("*.svg")} == set(drawings)
    for stage in (*LANE.clean, *LANE.dedup, *LANE.shards):
        assert f">{stage.name}</text>" in drawings["phases.svg"]


def test_names_are_text_in_a_drawing(script: ModuleType) -> None:
    rows = [script.Row("</text><script>alert(1)</script>", 3, 1), script.Row("none", 0, 0)]
    (title, *_), texts = (
        (root := ElementTree.fromstring(script.funnel(rows, "a & b"))),  # noqa: S314 - our own
        [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")],
    )
    assert title.text == "The funnel of a & b"
    assert "</text><script>alert(1)</script>" in texts and "1 kept, 2 lost" in texts


def test_counts_of_all_sources_are_added(script: ModuleType) -> None:
    entries = [
        {"stage": stage, "in": {"documents": came}, "kept": {"documents": kept}}
        for stage, came, kept in (("read", 5, 3), ("url", 3, 3), ("read", 2, 2), ("url", 2, 0))
    ]
    assert script.funnel_rows(entries) == [script.Row("read", 7, 5), script.Row("url", 5, 3)]


def test_every_picture_is_shown_and_all_are_small() -> None:
    link = re.compile(r"\]\((?:docs/|\.\./)?pictures/([\w.-]+)\)")
    shown = {name for path in PAGES for name in link.findall(path.read_text())}
    assert shown == {path.name for path in PICTURES.iterdir() if path.suffix != ".json"}
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) < MOST_BYTES


@pytest.mark.skipif(not ALL, reason="the whole demo: test-all runs it")
def test_the_counts_are_those_of_the_demo(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    steps = [
        "make",
        "-C",
        str(tmp_path),
        "-f",
        str(ROOT / "Makefile"),
        "demo-steps",
        f"BIN={Path(sys.executable).parent}",
    ]
    subprocess.run(steps, check=True, capture_output=True)
    manifest = json.loads((tmp_path / "out/demo/corpus/manifest.json").read_text())
    counted = [script.Row(**row) for row in json.loads((PICTURES / "funnel.json").read_text())]
    assert script.funnel_rows(manifest["funnel"]) == counted
