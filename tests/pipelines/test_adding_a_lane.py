"""A third lane, in a file beside its recipe: all that knows the stages of a run learns them from that file."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.schema import recipe_schema
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.write.shards import provenance_columns
from tests.corpus_factory import tokenizer_json
from tests.docs.blocks import subject_text
from tests.pipelines.inputs import corpus_bytes, run
from tests.sampling import one_commit_in_four

PAGE = subject_text("extending")
MODULE = '''
"""Letters: what stands between "Dear" and the signature."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from refinery.transforms.core.document import Document, Drop, RawDocument, document_id
from refinery.transforms.core.lane import Lane
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.dedup.stages import EXACT_DUPLICATES
from refinery.transforms.filter.pii import PII, PiiParams
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.sources import READ
from refinery.transforms.tokenize.encode import ENCODE
from refinery.transforms.write.documents import PARTS
from refinery.transforms.write.megatron import MEGATRON


class LetterSource(SourceParams):
    """A source of letters."""

    text_field: str = "letter"
    """field that holds the letter"""
    meta_fields: tuple[str, ...] = ("day",)
    """fields that are kept"""


class OpenParams(Params):
    """How a letter is opened."""

    greeting: str = "Dear"
    """what it begins with"""


class StampParams(Params):
    """What is noted."""

    file: str = ""
    """empty: that of the tokenizer"""


def open_letter(raw: RawDocument, params: OpenParams) -> Document | Drop:
    text = str(raw.content)
    if not text.startswith(params.greeting):
        return Drop("no-letter")
    return Document(document_id(text), text, raw.url, raw.source, raw.origin, raw.position, raw.meta)


def complete(params: StampParams, sections: Mapping[str, Any]) -> StampParams:
    return params if params.file else params.replace(file=sections["tokenizer"].path)


def stamp(doc: Document, params: StampParams) -> Document:
    return replace(doc, meta={**doc.meta, "stamp": params.file.rpartition("/")[2]})


OPEN = Stage(
    name="open", version=1, summary="Open letters.", params=OpenParams, judge=open_letter, optional=False,
    reasons=(Reason("no-letter", "it does not begin with `greeting`"),),
)
STAMP = Stage(
    name="stamp", version=1, summary="Note the tokenizer.", params=StampParams, judge=stamp, uses=("tokenizer",),
    complete=complete, notes=(Note("stamp", str, "the tokenizer", column=True),),
)
LANE = Lane(
    name="letters",
    summary="Letters to shards.",
    readers=("jsonl",),
    source=LetterSource,
    fields=(Note("day", str, "when it was written"),),
    clean=(READ, OPEN),
    parts=PARTS,
    dedup=(EXACT_DUPLICATES,),
    shards=(PII, STAMP, ENCODE),
    writer=MEGATRON,
    defaults={"pii": PiiParams(email_replacement="[address]")},
)
'''


@pytest.fixture
def recipe(tmp_path: Path) -> Iterator[Path]:
    """A folder with the lane, its inputs and its recipe."""
    (tmp_path / "letters.py").write_text(MODULE)
    letters = [f"Dear {name}, write to {name}@mail.example.org. {name * 3}" for name in ("anna", "bert", "carl")]
    letters += [letters[0], "To whom it may concern"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"letter": letter, "day": 7}) + "\n" for letter in letters))
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json())
    made = {
        "name": "mine",
        "lane": "letters:LANE",
        "sources": [{"name": "post", "paths": [str(tmp_path / "in.jsonl")]}],
        "tokenizer": {"path": str(tmp_path / "tokenizer.json"), "bos": "<s>", "eos": "</s>"},
        "packed": {"length": 64},
        "rejects": {"rate": 1.0},
        "shards": {"validation": 0.0},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(made))
    yield tmp_path / "mine.yaml"
    sys.modules.pop("letters", None)
    sys.path[:] = [place for place in sys.path if place != str(tmp_path)]


@one_commit_in_four
def test_a_run_from_end_to_end(recipe: Path, tmp_path: Path) -> None:
    """In worker processes and in the command itself: the same bytes, a funnel in the lane's order, verified."""
    for workers in (1, 0):
        run("refine", recipe, "--output", tmp_path / f"out-{workers}", "--workers", workers, "--quiet")
    assert corpus_bytes(tmp_path / "out-0") == corpus_bytes(tmp_path / "out-1")
    manifest = json.loads((tmp_path / "out-1" / "manifest.json").read_text())
    rows = {row["stage"]: (row["in"]["documents"], row["kept"]["documents"]) for row in manifest["funnel"]}
    assert rows == {
        "read": (5, 5), "open": (5, 4), "exact-duplicates": (4, 3), "pii": (3, 3), "stamp": (3, 3), "encode": (3, 3)
    }  # fmt: skip
    assert (manifest["lane"], manifest["columns"]) == (
        "letters",
        [{"name": name, "type": "string"} for name in ("day", "stamp")],
    )
    table = pq.read_table(next((tmp_path / "out-1").glob("train/*/*.provenance.parquet")))
    assert table["stamp"].to_pylist() == ["tokenizer.json"] * 3
    assert table["day"].to_pylist() == ["7"] * 3
    for words in (("verify",), ("inspect",), ("trace", "--id", table["id"][0].as_py().hex())):
        assert run(words[0], tmp_path / "out-1", *words[1:]).returncode == 0
    run("export", tmp_path / "out-1", "--format", "parquet", "--output", tmp_path / "text", "--workers", 0, "--quiet")
    texts = [
        text for path in (tmp_path / "text").rglob("*.parquet") for text in pq.read_table(path)["text"].to_pylist()
    ]
    assert len(texts) == 3 and all("write to [address]" in text for text in texts)


def test_what_follows_from_it(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load_recipe(str(recipe))
    assert [name for name, _ in loaded.active("shards")][1].name == "stamp"
    assert [column.name for column in provenance_columns(loaded.provenance())] == ["day", "stamp"]
    assert list(loaded.CODE.files) == ["letters.py"]
    properties = recipe_schema(type(loaded))["properties"]
    assert {"open", "stamp", "exact_dup", "packed"} <= properties.keys()
    assert not {"near_dup", "line_dup", "url_dup", "language"} & properties.keys()
    assert properties["lane"]["const"] == "letters:LANE"
    assert execute(["stages", "--recipe", str(recipe), "--markdown"]) == 0
    page = capsys.readouterr().out
    assert "# Stages of the lane letters" in page and "`no-letter`" in page


def test_its_code_is_in_the_fingerprint(recipe: Path) -> None:
    before = phase_fingerprints(load_recipe(str(recipe)), [])
    (recipe.parent / "letters.py").write_text(MODULE + "\n# another comment\n")
    sys.modules.pop("letters")
    assert phase_fingerprints(load_recipe(str(recipe)), [])["clean"] != before["clean"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"lane": "letters:LANES"}, "did you mean LANE?"),
        ({"lane": "letters:OPEN"}, "the module has no declaration of a lane by that name"),
        ({"lane": "nowhere:LANE"}, "lane: module 'nowhere' found neither in"),
        ({"lane": "letters"}, "lane: 'letters' given, chat, code, web or module:NAME is allowed"),
        ({"near_dup": {}}, "near_dup: on given, the lane letters has no such stage, off is allowed"),
        ({"language": {}}, "language: unknown key"),
        ({"open": {"greeting": 1}}, "open.greeting: 1 (an integer) given, text is allowed"),
    ],
)
def test_a_mistake_is_one_line(recipe: Path, changes: dict[str, object], problem: str) -> None:
    recipe.write_text(yaml.safe_dump(yaml.safe_load(recipe.read_text()) | changes))
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(recipe))
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_files_of_other_formats_are_refused(recipe: Path, tmp_path: Path) -> None:
    done = run("refine", recipe, "--input", tmp_path / "letters.py", "--output", tmp_path / "out", check=False)
    assert "unknown ending" in done.stderr
    (tmp_path / "a.csv").write_text("letter\nDear a\n")
    done = run("refine", recipe, "--input", tmp_path / "a.csv", "--output", tmp_path / "out", check=False)
    assert "a.csv is csv, jsonl is allowed in this lane" in done.stderr


def test_the_lane_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/extending/lane.md as it stands: a recipe names it, and its stage for licences is gone."""
    section = PAGE[PAGE.index("# A lane\n") :]
    block = re.search(r"```python\n(.*?)```", section, re.S)
    assert block and '`lane: "unlicensed:LANE"`' in section
    (tmp_path / "unlicensed.py").write_text(block[1])
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        'name: n\nlane: "unlicensed:LANE"\nsources: [{name: s, paths: [x.jsonl]}]\ntokenizer: {path: t.json}\n'
    )
    monkeypatch.setattr(sys, "path", list(sys.path))  # the recipe's folder is added
    names = [stage.name for stage in load_recipe(str(recipe)).LANE.stages]
    sys.modules.pop("unlicensed", None)
    assert "license" not in names and "code-heuristics" in names
