"""The steps of "A reader" in docs/extending/, followed literally: one file, one source of a recipe."""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.pipelines import refine
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe import user_stages
from refinery.pipelines.recipe.load_recipe import load_recipe, recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import phase_differences
from refinery.pipelines.run.fingerprint import describe_phase, describe_readers, phase_fingerprints
from refinery.pipelines.runners.dataflow.worker_package import build_package
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml
from refinery.transforms.read.at_origin import read_at
from refinery.transforms.read.formats.delimited import CSV
from refinery.transforms.read.formats.jsonl import JSONL
from refinery.transforms.read.plan import ReadTask, plan_sources
from refinery.transforms.read.probe import probe_sources
from refinery.transforms.read.sources import read_task
from tests.docs.blocks import subject_text
from tests.pipelines.inputs import ROOT, run
from tests.pipelines.small_runs import OFF, text_of
from tests.sampling import one_commit_in_four

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# A reader\n") :]
CODE, TEST = re.findall(r"```python\n(.*?)```", SECTION, re.S)[:2]
LINE = re.search(r"^sources: .*$", SECTION, re.M)
BLOCK = re.search(r"```text\n(.*?)```", SECTION, re.S)
POINT = re.search(r'^mbox = "(.*)"$', SECTION, re.M)
assert LINE and BLOCK and POINT

NUMBERS = (*range(10, 16), *range(20, 24))
HEAD = "From otter@a.example Wed May  1 12:00:00 2024\r\nMessage-ID: <{number}@a.example>\r\n"
MIXED = """Content-Type: multipart/mixed; boundary="x"

--x
Content-Type: multipart/alternative; boundary="y"

--y
Content-Type: text/html

<p>not this one</p>
--y
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

{text} Gr=FC=DFe
> quoted {number}
--y--
--x
Content-Type: text/plain
Content-Disposition: attachment; filename=a.txt

not this one either
--x--

"""
PICTURE = "Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0K\r\n\r\n"


def mailbox(numbers: Sequence[int]) -> bytes:
    """Messages of two parts, and one without text."""
    mails = [HEAD.format(number=at) + MIXED.format(text=text_of(at), number=at).replace("\n", "\r\n") for at in numbers]
    return "".join([*mails, HEAD.format(number="picture") + PICTURE]).encode()


@pytest.fixture
def mine(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's own folder: the reader beside a recipe, and mailboxes below it, which the recipe names from there."""
    (tmp_path / "mbox.py").write_text(CODE)
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "a.mbox").write_bytes(mailbox(NUMBERS[:6]))
    (tmp_path / "mail" / "b.mbox").write_bytes(gzip.compress(mailbox(NUMBERS[6:])))
    recipe = {
        "name": "mine",
        "tokenizer": {"path": str(small / "tokenizer.json")},
        "shards": {"validation": 0.0},
        **OFF,
    }
    line = LINE[0].replace("mail/", f"{tmp_path}/mail/")
    (tmp_path / "my.yaml").write_text(f"{yaml.safe_dump(recipe)}{line}\n")
    monkeypatch.setattr(sys, "path", list(sys.path))  # the recipe's folder is added
    yield tmp_path / "my.yaml"
    sys.modules.pop("mbox", None)


def change(recipe: Path, **keys: Any) -> None:
    """Write the recipe with other keys of its source."""
    data = yaml.safe_load(recipe.read_text())
    data["sources"] = [{**data["sources"][0], **keys}]
    recipe.write_text(yaml.safe_dump(data))


def check(corpus: Path) -> None:
    """Ten messages are documents, decoded, without what they quote; two have no text, for the reader's own reason."""
    manifest = json.loads((corpus / "manifest.json").read_text())
    (row,) = [row for row in manifest["funnel"] if row["stage"] == "read"]
    assert (row["in"]["documents"], row["kept"]["documents"]) == (12, 10)
    assert row["dropped"]["no-plain-text"]["documents"] == 2
    assert manifest["recipe"]["sources"][0]["format"] == "mbox:MBOX"
    assert manifest["recipe"]["sources"][0]["options"] == {"quoted": False}
    rows = [row for path in corpus.glob("train/*/*.provenance.parquet") for row in pq.read_table(path).to_pylist()]
    assert sorted(json.loads(row["meta"])["record_id"] for row in rows) == [f"<{at}@a.example>" for at in NUMBERS]


def shards(corpus: Path) -> dict[str, bytes]:
    return {path.relative_to(corpus).as_posix(): path.read_bytes() for path in corpus.glob("*/*/shard-*")}


@one_commit_in_four
def test_a_reader_of_ones_own_on_every_runner_here(mine: Path, tmp_path: Path) -> None:
    """Processes of the local runner, this process, and DirectRunner give the same bytes; other commands take it."""
    run("refine", mine, "--output", tmp_path / "pool", "--workers", 1)
    run("refine", mine, "--output", tmp_path / "direct", "--runner", "DirectRunner")
    refine(mine, tmp_path / "here", workers=0)
    for name in ("pool", "here", "direct"):
        check(tmp_path / name)
    assert shards(tmp_path / "pool") == shards(tmp_path / "here") == shards(tmp_path / "direct") != {}
    assert execute(["verify", str(tmp_path / "pool")]) == 0
    row = next(iter(pq.read_table(next((tmp_path / "pool").glob("train/*/*.provenance.parquet"))).to_pylist()))
    assert run("trace", tmp_path / "pool", "--origin", row["origin"]).returncode == 0
    audit = ("audit", tmp_path / "pool", "--sample", 1, "--workers", 0)
    assert "name the recipe's file with --recipe" in run(*audit, check=False).stderr
    assert run(*audit, "--recipe", mine).returncode == 0
    assert "kept" in run("try", mine, "--origin", row["origin"]).stdout
    run("train-tokenizer", mine, "--output", tmp_path / "t.json", "--vocab-size", 300, "--workers", 1)
    texts = run("export", tmp_path / "pool", "--format", "jsonl", "--output", tmp_path / "texts", "--workers", 0)
    assert texts.returncode == 0


@one_commit_in_four
def test_a_reader_of_this_tree(mine: Path, tmp_path: Path) -> None:
    """In a copy of the tree nothing is edited but the one new file: by its name, and by its ending."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "refinery", tree / "refinery")
    own = CODE.replace("task.options.quoted", "True").replace("    options=MboxParams,\n", "")
    (tree / "refinery" / "transforms" / "read" / "formats" / "mbox.py").write_text(own)
    (tmp_path / "mbox.py").unlink()
    data = yaml.safe_load(mine.read_text())
    del data["sources"][0]["quoted"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    corpora = []
    for form in ("mbox", "auto"):
        mine.write_text(yaml.safe_dump({**data, "sources": [{**data["sources"][0], "format": form}]}))
        words = [sys.executable, "-P", "-m", "refinery", "refine", str(mine), "--output", str(tmp_path / form)]
        subprocess.run([*words, "--workers", "0"], env=environment, check=True, capture_output=True)
        corpora.append(shards(tmp_path / form))
    assert corpora[0] == corpora[1] != {}


@one_commit_in_four
def test_its_own_test_passes(tmp_path: Path) -> None:
    (tmp_path / "mbox.py").write_text(CODE)
    (tmp_path / "test_mbox.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mbox.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr


def tasks_of(recipe: Path) -> list[ReadTask]:
    loaded = load_recipe(str(recipe))
    return plan_sources(loaded.sources, notes=loaded.notes(), readers=loaded.LANE.readers)


def test_records_and_where_they_are(mine: Path) -> None:
    limits = load_recipe(str(mine)).limits
    task, packed = tasks_of(mine)
    records = list(read_task(task, limits))
    first = records[0]
    assert (first.content.decode("latin-1"), first.charset) == (f"{text_of(10)} Grüße\r\n", "iso-8859-1")  # type: ignore[union-attr]
    assert all(read_at(task, int(record.origin.rpartition("@")[2]), limits) == record for record in records)
    assert len(list(read_task(packed, limits))) == 5
    assert ReadTask.from_json(task.to_json()) == task


def test_what_looks_like_a_separator_and_a_part_without_headers(mine: Path) -> None:
    box = HEAD.format(number=1) + "\r\nOne.\r\n\r\nFrom here on:\r\n>From there.\r\n> quoted\r\n\r\n"
    box += HEAD.format(number=2) + 'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\n\r\nTwo.\r\n--x--\r\n'
    (mine.parent / "mail" / "a.mbox").write_bytes(box.encode())
    first, second = read_task(tasks_of(mine)[0])
    assert first.content == b"One.\r\n\r\nFrom here on:\r\nFrom there.\r\n\r\n"  # type: ignore[union-attr]
    assert second.content == b"Two."  # type: ignore[union-attr]


def test_it_travels_in_the_worker_package(mine: Path) -> None:
    sources = load_recipe(str(mine)).CODE.sources()
    assert sources == {"mbox.py": CODE.encode()}
    with tarfile.open(fileobj=io.BytesIO(build_package(sources))) as archive:
        names = {name.partition("/")[2]: name for name in archive.getnames()}
        assert archive.extractfile(names["mbox.py"]).read() == CODE.encode()  # type: ignore[union-attr]


def test_its_code_its_version_and_its_options_are_in_the_fingerprint(mine: Path) -> None:
    seen = [phase_fingerprints(load_recipe(str(mine)), [])["clean"]]
    for code in (f"{CODE}\n# another comment\n", CODE.replace("version=1", "version=2")):
        (mine.parent / "mbox.py").write_text(code)
        sys.modules.pop("mbox")
        seen.append(phase_fingerprints(load_recipe(str(mine)), [])["clean"])
    change(mine, quoted=True)
    seen.append(phase_fingerprints(load_recipe(str(mine)), [])["clean"])
    assert len(set(seen)) == 4
    change(mine, format="text", quoted=True)
    with pytest.raises(RecipeError, match=r"sources\[0\].quoted: unknown key"):
        load_recipe(str(mine))


def test_recipes_without_one_are_what_they_were(small: Path) -> None:
    described = describe_phase(load_recipe(str(small / "recipe.yaml")), "clean", lambda path: "")
    assert all("readers" not in stage for stage in described["stages"])
    assert "options" not in described["recipe"]["sources"][0]


def test_its_reasons_are_on_the_page(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["stages", "--recipe", str(mine), "--markdown"]) == 0
    assert "`no-plain-text`" in capsys.readouterr().out
    assert execute(["stages", "read", "--recipe", str(mine)]) == 0
    assert "no-plain-text" in capsys.readouterr().out


PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "another name": (
        {"format": "mbox:MBX"},
        "sources[0].format: 'mbox:MBX' given, the module has no declaration of a "
        "reader by that name; did you mean MBOX?",
    ),
    "no module": ({"format": "nothing:X"}, "sources[0].format: module 'nothing' found neither in"),
    "no reader": ({"format": "mbox:read_mbox"}, "no declaration of a reader by that name"),
    "a word": ({"format": "jsnol"}, "sources[0].format: 'jsnol' given, one of auto, csv, "),
    "a word that is near": ({"format": "jsnol"}, "module:NAME is allowed; did you mean jsonl?"),
    "an option's type": ({"quoted": 3}, "sources[0].quoted: 3 (an integer) given, on or off is allowed"),
    "an unknown option": ({"quotd": True}, "sources[0].quotd: unknown key, did you mean quoted?"),
    "an unknown key": ({"sampel": 0.5}, "sources[0].sampel: unknown key, did you mean sample?"),
    "no options": ({"options": 3}, "sources[0].options: 3 (an integer) given, a mapping"),
    "options of ours": ({"format": "text", "options": {"a": 1}, "quoted": None}, "sources[0].quoted: unknown key"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_mistake_is_one_line(mine: Path, name: str) -> None:
    keys, problem = PROBLEMS[name]
    change(mine, **keys)
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(mine))
    assert problem in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value) or name == "options of ours"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise OSError('no disk')", "format: module 'mbox' cannot be imported: OSError: no disk"),
        ("import nothing_of_that_name", "cannot be imported: No module named 'nothing_of_that_name'"),
        (CODE.replace('name="mbox"', 'name="jsonl"'), "a reader 'jsonl': a name that no format has is allowed"),
        (CODE.replace('name="mbox"', 'name="M box"'), "reader: name 'M box' given, lower-case letters"),
        (CODE.replace("version=1", "version=0"), "reader mbox: version 0 given, 1 or more is allowed"),
        (CODE.replace('magic=(b"From ",)', 'magic=b"From "'), "reader mbox: magic of type bytes given, a tuple is"),
    ],
)
def test_a_module_that_declares_none_is_one_line(mine: Path, code: str, problem: str) -> None:
    (mine.parent / "mbox.py").write_text(code)
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(mine))
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_two_readers_of_one_name(mine: Path) -> None:
    other = "OTHER = Reader(name='mbox', version=2, summary='', offset='', read=read_mbox)"
    (mine.parent / "mbox.py").write_text(f"{CODE}\n{other}\n")
    data = yaml.safe_load(mine.read_text())
    second = {"name": "other", "paths": ["x"], "format": "mbox:OTHER"}
    mine.write_text(yaml.safe_dump({**data, "sources": [*data["sources"], second]}))
    with pytest.raises(RecipeError, match=r"sources\[1\].format: 'mbox:OTHER' given, a reader 'mbox': mbox:MBOX has"):
        load_recipe(str(mine))


def test_an_entry_point_is_named_alone(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an installed package offers in the group refinery.readers; recipes record what it stands for."""
    point = EntryPoint(name="mbox", value=POINT[1], group="refinery.readers")
    monkeypatch.setattr(user_stages, "entry_points", lambda group: [point] if group == point.group else [])
    change(mine, format="mbox")
    recipe = load_recipe(str(mine))
    assert recipe.sources[0].format == "mbox:MBOX" and recipe.CODE.sources() == {"mbox.py": CODE.encode()}
    with pytest.raises(RecipeError, match="a lane of its own; name the recipe's file with --recipe"):
        recorded_recipe("there", recipe.deciding())
    change(mine, format="mbx")
    with pytest.raises(
        RecipeError, match=r"'mbx' given, one of auto, .*, mbox or module:NAME is allowed; did you mean"
    ):
        load_recipe(str(mine))


@one_commit_in_four
def test_an_installed_package_is_read_in_worker_processes(mine: Path, tmp_path: Path) -> None:
    """A package as pip lays it out, the entry point as the page has it; nothing is beside the recipe."""
    site = tmp_path / "site"
    (site / "mailboxes-1.dist-info").mkdir(parents=True)
    (site / "mbox.py").write_text(CODE)
    (site / "mailboxes-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mailboxes\nVersion: 1\n")
    (group,) = tomllib.loads(BLOCK[1])["project"]["entry-points"].items()
    points = "".join(f"{name} = {value}\n" for name, value in group[1].items())
    (site / "mailboxes-1.dist-info" / "entry_points.txt").write_text(f"[{group[0]}]\n{points}")
    (tmp_path / "mbox.py").unlink()
    change(mine, format="mbox")
    words = ("refine", mine, "--output", tmp_path / "out", "--workers", 1, "--quiet")
    run(*words, alone=True, environment={"PYTHONPATH": str(site)})
    check(tmp_path / "out")


def test_what_differs_between_two_runs_is_named(mine: Path) -> None:
    before = describe_phase(load_recipe(str(mine)), "clean", lambda path: "")
    (mine.parent / "mbox.py").write_text(f"{CODE}\n# another comment\n")
    sys.modules.pop("mbox")
    after = describe_phase(load_recipe(str(mine)), "clean", lambda path: "")
    runs = [{"recipe": each["recipe"], "inputs": [], "stages": {"clean": each["stages"]}} for each in (before, after)]
    assert phase_differences(*runs, "clean", ("sources",)) == "the reader mbox:MBOX of the stage read differs"


def test_a_version_of_ours_beyond_the_first_is_in_the_fingerprint(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe(str(small / "recipe.yaml"))
    before = phase_fingerprints(recipe, [])["clean"]
    monkeypatch.setattr(Recipe, "readers", lambda self: [replace(JSONL, version=2), CSV])
    assert list(describe_readers(recipe)) == [{"name": "jsonl", "version": 2}]
    assert phase_fingerprints(recipe, [])["clean"] != before


def test_tasks_of_two_runs_are_compared(mine: Path) -> None:
    """Options are what a task list has, whatever the recipe's are made of."""
    code = CODE.replace("quoted: bool = True", "quoted: bool = True\n    names: tuple[str, ...] = ()")
    (mine.parent / "mbox.py").write_text(code)
    change(mine, names=["a", "b"])
    (task, _) = tasks_of(mine)
    assert task.options == {"names": ["a", "b"], "quoted": False} and {ReadTask.from_json(task.to_json())} == {task}


def test_input_by_hand_keeps_the_format(mine: Path) -> None:
    recipe = load_recipe(str(mine), inputs=["x.mbox"])
    assert (recipe.sources[0].format, recipe.sources[0].options) == ("mbox:MBOX", {"quoted": False})


def test_what_is_no_mailbox_is_said_before_anything_runs(mine: Path) -> None:
    for name in ("a", "b"):
        (mine.parent / "mail" / f"{name}.mbox").write_bytes(b"%PDF-1.7 of a mail")
    (problem,) = probe_sources(tasks_of(mine), load_recipe(str(mine)).limits).values()
    assert "a.mbox is not a file of the format mbox: it looks like a PDF document" in problem
    for name in ("a", "b"):
        (mine.parent / "mail" / f"{name}.mbox").write_bytes(b"From me to you")
    (problem,) = probe_sources(tasks_of(mine), load_recipe(str(mine)).limits).values()
    assert "a.mbox is damaged, or was cut off: it begins like a file of the format mbox" in problem


def test_the_line_of_the_page_is_what_the_page_says() -> None:
    (source,) = load_yaml(LINE[0], "line")["sources"]
    assert source == {"name": "mail", "paths": ["mail/*.mbox"], "format": "mbox:MBOX", "quoted": False}
