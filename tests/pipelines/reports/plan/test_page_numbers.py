"""The page's script reads numbers as Python does. Needs node; the tests of the page in a browser do not."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from refinery.pipelines.recipe.quantities.quantity import BARE, FACTORS, GRAMMARS, parse_quantity
from refinery.pipelines.reports.plan import page

NODE = shutil.which("node")
TEXTS = [
    *("100B", "15b", "2B", "2e9", "2E9", "1.5T", "10k", "64", ".5M", "1_000k", "6PB", "6 PB", "6pb", "100 bytes", "7E"),
    *("", "-1", "+1", "1 KiB", "1Q", "inf", "0x10", "1,5", "٣", "14.8TB", "2 B", "B", "1e9k", "100BB", "3 byte", "5mb"),
]


def script_function(name: str) -> str:
    """A function of the page's script, from the file itself."""
    text = (Path(page.__file__).parent / "page.js").read_text(encoding="utf-8")
    found = re.search(rf"^function {name}\(.*?^}}$", text, re.MULTILINE | re.DOTALL)
    assert found
    return found[0]


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_script_reads_what_python_reads() -> None:
    data = {"grammars": {name: each.pattern for name, each in GRAMMARS.items()}, "bare": BARE.pattern}
    asked = [(text, kind) for text in TEXTS for kind in GRAMMARS]
    script = f"""const data = {json.dumps({**data, "factors": FACTORS})};
{script_function("parse")}
{script_function("readings")}
const asked = {json.dumps(asked)};
console.log(JSON.stringify(asked.map(([text, kind]) => [parse(text, kind), readings(text, kind)])));"""
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, check=True)
    for (text, kind), (value, said) in zip(asked, json.loads(done.stdout), strict=True):
        try:
            expected, why = parse_quantity(text, kind), ""
        except ValueError as error:
            expected, why = None, str(error)
        assert value == expected, text
        assert said == (why.partition("given, ")[2] if "billion?" in why else ""), text
