"""The steps of "A cut" in docs/extending/, followed literally: one file, one line of a recipe."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.read.corpus import Corpus
from refinery.pipelines import refine
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.docs.blocks import subject_text
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import OFF, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# A cut\n") :]
CODE, TEST = re.findall(r"```python\n(.*?)```", SECTION, re.S)[:2]
LINE = re.search(r"^stages: .*$", SECTION, re.M)
assert LINE

SHARED = "Sign up for our newsletter today!"
PAGES, STUBS = 60, 3


def page(number: int) -> str:
    """The shared sentence at another place of each page, in another case and spacing of some, and a short one."""
    own = [f"Sentence {number} {at}: {text_of(number * 7 + at)}." for at in range(3)]
    own.insert(number % 4, SHARED.upper().replace(" ", "  ") if number % 5 == 0 else SHARED)
    return " ".join(own) + f"\nRead more. The end of {number} is here."


def left_of(text: str) -> str:
    """The text without the sentence, by plain string search."""
    for form in (SHARED, SHARED.upper().replace(" ", "  ")):
        text = text.replace(f" {form}", "").replace(form, "")
    return text.strip()


@pytest.fixture
def mine(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's own folder: the cut beside a recipe, and a file of pages."""
    (tmp_path / "sentences.py").write_text(CODE)
    texts = [*map(page, range(PAGES)), *(f"{SHARED} Stub {number}." for number in range(STUBS))]
    texts += ["Nothing is shared in here. " + text_of(at) for at in range(3)]
    rows = [json.dumps({"text": text, "id": str(at)}) + "\n" for at, text in enumerate(texts)]
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_text("".join(rows[number::2]))
    recipe = {
        "name": "mine",
        "sources": [{"name": "s", "paths": [f"{tmp_path}/*.jsonl"], "id_field": "id"}],
        "tokenizer": {"path": str(small / "tokenizer.json")},
        "shards": {"validation": 0.0},
        **OFF,
    }
    (tmp_path / "my.yaml").write_text(f"{yaml.safe_dump(recipe)}{LINE[0]}\n")
    monkeypatch.setattr(sys, "path", list(sys.path))  # the recipe's folder is added
    yield tmp_path / "my.yaml"
    sys.modules.pop("sentences", None)


def change(recipe: Path, **keys: Any) -> None:
    data = yaml.safe_load(recipe.read_text())
    recipe.write_text(yaml.safe_dump({**data, **keys}))


def contents(recipe: Path, corpus: Path) -> dict[int, tuple[str, int]]:
    """Record -> its text in the corpus, and how many sentences were cut."""
    tokenizer = load_tokenizer(load_recipe(str(recipe)).tokenizer.path)
    found = {}
    for shard in Corpus(str(corpus)).shards("train"):
        for at, meta in enumerate(shard.provenance()["meta"].to_pylist()):
            notes = json.loads(meta)
            assert "cut_sentences" not in notes
            text = tokenizer.decode(shard[at][:-1].tolist())
            found[int(notes["record_id"])] = text, notes.get("sentences_cut", 0)
    return found


def shards(corpus: Path) -> dict[str, bytes]:
    return {path.relative_to(corpus).as_posix(): path.read_bytes() for path in corpus.glob("*/*/shard-*")}


def test_the_steps_on_every_runner_here(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Processes of the local runner, this process, and DirectRunner give the same bytes; other commands take it."""
    run("refine", mine, "--output", tmp_path / "pool", "--workers", 1)
    run("refine", mine, "--output", tmp_path / "direct", "--runner", "DirectRunner")
    refine(mine, tmp_path / "here", workers=0)
    found = contents(mine, tmp_path / "here")
    want = {number: (left_of(page(number)), 1) for number in range(PAGES)}
    assert {number: found[number] for number in range(PAGES) if number in found} == want
    assert sorted(set(found) - set(want)) == [PAGES + STUBS + at for at in range(3)]
    assert all(found[number][1] == 0 for number in set(found) - set(want))
    assert shards(tmp_path / "pool") == shards(tmp_path / "here") == shards(tmp_path / "direct") != {}

    manifest = json.loads((tmp_path / "here" / "manifest.json").read_text())
    (row,) = [row for row in manifest["funnel"] if row["stage"] == "sentences"]
    assert row["in"]["documents"] == PAGES + STUBS + 3
    assert row["dropped"]["too-little-left"]["documents"] == STUBS
    work = tmp_path / "here"
    signatures = [pq.read_schema(path) for path in work.rglob("signatures/part-*.parquet")]
    assert signatures and all(schema.names[-1] == "sentences" for schema in signatures)
    verdicts = [pq.read_schema(path) for path in work.rglob("verdicts/part-*.parquet")]
    assert verdicts and all(schema.names[-3:] == ["cut", "cut_spans", "cut_sentences"] for schema in verdicts)

    assert execute(["verify", str(tmp_path / "pool")]) == 0
    capsys.readouterr()
    assert execute(["audit", str(tmp_path / "pool"), "--sample", "1", "--workers", "0", "--recipe", str(mine)]) == 0
    capsys.readouterr()
    row = next(iter(pq.read_table(next((tmp_path / "pool").glob("train/*/*.provenance.parquet"))).to_pylist()))
    assert execute(["try", str(mine), "--origin", row["origin"]]) == 0
    assert re.search(r"sentences\s+needs the other documents", capsys.readouterr().out)


OWN_FIND = '''

def keep_first(part, batches, params, column, tag):
    """Of a part's header and REMOVAL rows, a row for every sentence that an earlier kept document of the part has."""
    url, rows = read_header(batches)
    seen = set()
    alive = kept_rows(rows, batches)
    for first, table in read_signature_part(url, rows, (column,)):
        for row, hashes in enumerate(table[column].to_pylist(), first):
            if not alive[row]:
                continue
            found = [at for at, value in enumerate(hashes) if value & 15 >= params.min_line_words and value in seen]
            seen.update(hashes)
            out = np.empty(len(found), CUT)
            out["locator"], out["line"] = part << 32 | row, found
            yield from cut(part, tag, out)


class KeepFirst(beam.PTransform):
    def __init__(self, keep):
        super().__init__("sentences")
        self.keep = keep

    def expand(self, decided):
        return decided | Exchange("kept") | MapRecordBatches("sentences", "repeats", self.keep, by_part=True)


def find_sentences(stage, params, compared):
    column = stage.hashed.columns[0].name
    return KeepFirst(partial(keep_first, params=params, column=column, tag=stage.cuts.tag))
'''
OWN_IMPORTS = """from functools import partial
import apache_beam as beam
import numpy as np
from refinery.transforms.dedup.line_duplicates import kept_rows
from refinery.transforms.dedup.signatures import read_signature_part
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches
from refinery.transforms.dedup.records.record_batch import cut, read_header
"""


def test_a_search_of_ones_own(mine: Path, tmp_path: Path) -> None:
    """`find` names a function beside the recipe: here the first document of a part keeps a sentence, others lose it."""
    code = CODE.replace("refinery.transforms.dedup.line_duplicates:count_lines", "sentences:find_sentences")
    code = code.replace("import pyarrow as pa\n", f"import pyarrow as pa\n{OWN_IMPORTS}")
    (mine.parent / "sentences.py").write_text(code + OWN_FIND)
    run("refine", mine, "--output", tmp_path / "out", "--workers", 1)
    parts = len(list((tmp_path / "out").rglob("verdicts/part-*.parquet")))
    found = contents(mine, tmp_path / "out")
    whole = [number for number in range(PAGES) if found[number] == (page(number), 0)]
    cut = [number for number in range(PAGES) if found[number] == (left_of(page(number)), 1)]
    assert len(whole) == parts > 0 and len(cut) == PAGES - parts


def test_its_test_passes(mine: Path) -> None:
    (mine.parent / "test_sentences.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(mine.parent / "test_sentences.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=mine.parent, timeout=240)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


def test_another_threshold_repeats_phases_2_and_3_alone(mine: Path, tmp_path: Path) -> None:
    before = phase_fingerprints(load_recipe(str(mine)), [])
    refine(mine, tmp_path / "first", workers=0)
    change(mine, stages=[{"use": "sentences:SENTENCES", "after": "page-license", "max_documents": PAGES + STUBS}])
    after = phase_fingerprints(load_recipe(str(mine)), [])
    assert before["clean"] == after["clean"] and before["dedup"] != after["dedup"]
    refine(mine, tmp_path / "second", workers=0, reuse=str(tmp_path / "first"))
    found = contents(mine, tmp_path / "second")
    assert {number: found[number] for number in range(PAGES)} == {n: (page(n), 0) for n in range(PAGES)}
    assert len(found) == PAGES + STUBS + 3

    (mine.parent / "sentences.py").write_text(CODE + "\n# another comment\n")
    sys.modules.pop("sentences")
    changed = phase_fingerprints(load_recipe(str(mine)), [])
    assert all(changed[phase] != after[phase] for phase in after)


def test_a_takedown_knows_that_others_would_be_cut_again(mine: Path, tmp_path: Path) -> None:
    """A copy in another source does not come back: what is cut out of it depends on all documents."""
    with (mine.parent / "1.jsonl").open("a") as file:
        file.write(json.dumps({"text": page(0), "id": "copy"}) + "\n")
    each = {"id_field": "id"}  # the copy in the first source stays
    sources = [{"name": f"s{at}", "paths": [f"{tmp_path}/{at}.jsonl"], "priority": at, **each} for at in range(2)]
    change(mine, sources=sources)
    refine(mine, tmp_path / "old", workers=0)
    run("remove", tmp_path / "old", "--output", tmp_path / "new", "--workers", 0, "--source", "s0", "--recipe", mine)
    assert execute(["verify", str(tmp_path / "new"), "--against", str(tmp_path / "old")]) == 0
    proof = json.loads((tmp_path / "new" / "takedowns/00001/removal.json").read_text())
    (reason,) = proof["duplicates"]["not_reinstated"]
    assert reason == "the recipe has sentences on, and what would be cut out of it is not known"


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"line_dup": {}}, "line_dup: given with sentences, which changes the text before it cuts; one of both"),
        ({"after": "lines", "substring_dup": {}}, "sentences: given with substring_dup, which changes the text"),
        ({"after": "heuristics"}, "after: 'heuristics' given, opt-out, page-license, substrings, lines is allowed"),
        ({"after": "pii"}, "after: 'pii' given, opt-out, page-license, substrings, lines is allowed"),
        ({"min_line_words": 16}, "stages[0].min_line_words: 16 given, an integer from 1 to 15 is allowed"),
    ],
)
def test_what_does_not_go_together(keys: dict[str, Any], message: str, mine: Path) -> None:
    stage = {"use": "sentences:SENTENCES", "after": "page-license", "max_documents": 50}
    own = {key: value for key, value in keys.items() if not key.endswith("_dup")}
    change(mine, stages=[{**stage, **own}], **{key: keys[key] for key in keys if key not in own})
    with pytest.raises(RecipeError, match=re.escape(message)):
        load_recipe(str(mine))


@pytest.mark.parametrize(
    ("there", "here", "message"),
    [
        (":count_lines", ":count_line", "sentences: find .*:count_line' given: .* has no attribute 'count_line'"),
        (
            "pa.list_(pa.uint64())",
            "pa.uint64()",
            r"sentences: column sentences: 0 values of list.* of uint64 are needed",
        ),
        ("SentenceParams(LineParams)", "SentenceParams(Params)", "and SentenceParams given, one column"),
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(
    there: str, here: str, message: str, mine: Path, tmp_path: Path
) -> None:
    code = CODE.replace(there, here)
    assert code != CODE
    params = "from refinery.transforms.core.params import Params\n"
    (mine.parent / "sentences.py").write_text(code.replace("import pyarrow as pa\n", f"import pyarrow as pa\n{params}"))
    with pytest.raises(RecipeError, match=message):
        refine(mine, tmp_path / "out", workers=0)
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_column_that_is_not_what_it_says_ends_the_run(mine: Path, tmp_path: Path) -> None:
    """Not one document is taken for another: the run says which column has which fault."""
    (mine.parent / "sentences.py").write_text(CODE.replace("for doc in docs]", "for doc in docs[1:]]"))
    with pytest.raises(Exception, match=r"column sentences: \d+ values of list<item: uint64> with 0 nulls made"):
        refine(mine, tmp_path / "out", workers=0)
    assert not (tmp_path / "out" / "manifest.json").exists()
