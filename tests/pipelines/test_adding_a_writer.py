"""The steps of "A writer" in docs/extending/, followed literally: one file, one line of a recipe; and what looks at a
corpus of texts."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

import refinery.corpus
from refinery.loader import TokenStream
from refinery.loader.errors import FormatError, NoTokens
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.lanes.web import LANE as WEB
from refinery.pipelines.recipe import user_stages, writers
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.writers import own_writers
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.docs.blocks import subject_text
from tests.pipelines.inputs import corpus_bytes, run
from tests.sampling import one_commit_in_four

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# A writer\n") :]
CODE, TEST = re.findall(r"```python\n(.*?)```", SECTION, re.S)[:2]
LINE = re.search(r"```yaml\n(.*?)\n```", SECTION, re.S)
COMMANDS = re.search(r"```sh\n(.*?)\n```", SECTION, re.S)
assert LINE and COMMANDS
TEXTS = [f"Otters keep stone {number}\n in a pouch, “{'x' * number}”. 中文 {number * number}" for number in range(60)]
NOTE = "\nSign up for our newsletter today, dear reader"  # which deduplication cuts


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user's own folder, with a corpus of texts in out/texts."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "jsonl_texts.py").write_text(CODE)
    lines = [{"text": text + NOTE, "url": f"https://e.example/{at}"} for at, text in enumerate([*TEXTS, TEXTS[0]])]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = {
        "name": "texts",
        **yaml.safe_load(LINE[1]),
        "sources": [{"name": "s", "paths": [str(folder / "in.jsonl")]}],
        "language": False,
        "heuristics": False,
        "toxicity": False,
        "near_dup": None,
        "line_dup": {"max_documents": 2, "min_chars": 1},  # cut: texts that are not those of their ids
        "shards": {"validation": 0.2, "target_bytes": 1500},
    }
    (folder / "texts.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", folder / "texts.yaml", "--output", folder / "out" / "texts", "--workers", 1, "--quiet")
    yield folder
    sys.modules.pop("jsonl_texts", None)
    sys.path[:] = [place for place in sys.path if place != str(folder)]


@pytest.fixture
def out(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The corpus, in a process that does not know its writer yet; commands run in the user's folder."""
    monkeypatch.setattr(writers, "_named", {})
    monkeypatch.chdir(mine)
    return mine / "out" / "texts"


def texts_of(out: Path) -> list[str]:
    found = []
    for path in sorted(out.rglob("*.jsonl.zst")):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
        found += [json.loads(line)["text"] for line in data.splitlines()]
    return found


def test_the_shards(mine: Path, out: Path) -> None:
    """Texts, their provenance, and a manifest that says nothing of tokens; the same bytes by other processes."""
    assert sorted(texts_of(out)) == sorted(TEXTS)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["writer"] == "jsonl"
    assert manifest["shard_files"] == [{"kind": "text", "ending": ".jsonl.zst"}]
    assert not {"dtype", "dtype_code", "tokenizer", "packed"} & manifest.keys()
    assert manifest["totals"] == {"documents": 60, "bytes": sum(len(text.encode()) for text in TEXTS)}
    assert not any("tokens" in entry for domain in manifest["domains"] for entry in (domain, *domain["listings"]))
    names = pq.read_schema(next(out.glob("train/s/*.provenance.parquet"))).names
    assert "text_bytes" in names and "token_count" not in names
    assert not (out / "tokenizer").exists() and len(list(out.glob("train/s/*.jsonl.zst"))) > 2
    run("refine", mine / "texts.yaml", "--output", mine / "out" / "again", "--workers", 0, "--quiet")
    assert corpus_bytes(mine / "out" / "again") == corpus_bytes(out)


def test_the_commands_of_the_page(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS[1].splitlines():
        assert execute(command.split()[1:]) == 0, command
    said = capsys.readouterr().out
    assert "60 documents in" in said and "read back 60 documents" in said and "all checks passed" in said
    assert "as published: read from its shard" in said and "Otters keep stone" in said


def test_a_writer_that_nobody_named(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads texts says what to do; what does not works. An installed package is asked, a corpus never."""
    sys.modules.pop("jsonl_texts", None)
    unknown = "its writer is 'jsonl', which is not known here; name the recipe's file with --recipe"
    assert execute(["verify", str(out)]) == 1
    assert unknown in capsys.readouterr().out
    opened = refinery.corpus.open(out)
    with pytest.raises(FormatError, match=unknown):
        list(opened.documents(["text"]))
    assert sum(batch.num_rows for batch in opened.documents(["id", "url"])) == 60
    for words in (["inspect", str(out)], ["card", str(out)], ["report", str(out), "--overwrite"]):
        assert execute(words) == 0, words
    assert "texts         written by jsonl" in capsys.readouterr().out
    assert unknown.replace("'", "&#39;") in (out / "report.html").read_text().replace("&#x27;", "&#39;")
    assert "jsonl_texts" not in sys.modules
    points = [EntryPoint("jsonl", "jsonl_texts:JSONL", "refinery.writers")]
    monkeypatch.setattr(user_stages, "entry_points", lambda group: [p for p in points if p.group == group])
    assert execute(["verify", str(out)]) == 0


def test_the_corpus_in_python(mine: Path, out: Path) -> None:
    writer = load_recipe("texts.yaml").LANE.writer
    corpus = refinery.corpus.open(out, writer=writer)
    rows = [row for batch in corpus.documents(["id", "url", "text", "text_bytes"]) for row in batch.to_pylist()]
    assert sorted(row["text"] for row in rows) == sorted(TEXTS)
    assert all(len(row["text"].encode()) == row["text_bytes"] for row in rows)
    few = [row for batch in corpus.documents(["url", "text"], where="text_bytes > 80") for row in batch.to_pylist()]
    by_url = {row["url"]: row["text"] for row in rows}
    assert 0 < len(few) < 60 and all(by_url[row["url"]] == row["text"] for row in few)
    for row in rows[:5]:
        place = corpus.find(url=row["url"])[0].place
        assert (place.token_offset, place.token_count) == (-1, -1)
        assert corpus.text(place) == corpus.text(row["id"]) == row["text"]
    with pytest.raises(NoTokens):
        corpus.tokens(rows[0]["id"])


@pytest.mark.parametrize(
    "words",
    [
        ["export", "OUT", "--to", "megatron", "--output", "x"],
        ["export", "OUT", "--format", "torch", "--output", "x"],
        ["retokenize", "OUT", "--tokenizer", "t.json", "--output", "x"],
        ["blend", "OUT"],
        ["mix", "mix.yaml", "--output", "x"],
        ["plan", "--from", "OUT"],
        ["shards", "OUT", "--node", "a"],
        ["show", "OUT", "--id", "0" * 32, "--tokens"],
        ["trace", "OUT", "--token", "train/s/shard-00000-of-00003:1"],
    ],
)
def test_what_needs_tokens_says_so_in_one_line(words: list[str], out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mix.yaml").write_text(f"name: v\ncorpora: {{a: {out}}}\ndomains: [{{name: x, parts: [a]}}]\n")
    shards = len(list(out.glob("train/s/*.jsonl.zst")))
    assert execute([word.replace("OUT", str(out)).replace("00003", f"{shards:05d}") for word in words]) != 0
    said = capsys.readouterr().err.strip()
    assert said.count("texts without tokens, which are needed here; run `refinery tokenize PREFIX") == 1, said
    assert "\n" not in said.partition("refinery: ")[2]
    assert not Path("x").exists()


def test_what_needs_the_writer_says_so_before_anything_is_written(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["remove", str(out), "--source", "s", "--output", "x"]) == 2
    assert (
        "its writer is 'jsonl', which is not known here; name the recipe's file with --recipe"
        in capsys.readouterr().err
    )
    assert execute(["export", str(out), "--format", "jsonl", "--output", "x"]) == 2
    assert "its shards are texts already (.jsonl.zst)" in capsys.readouterr().err
    assert not Path("x").exists()


def test_taken_out_audited_and_compared(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A corpus of lines that were cut, so texts are compared word by word."""
    known = ["--recipe", "texts.yaml"]
    Path("urls.txt").write_text("https://e.example/1\n")
    assert execute(["remove", str(out), "--urls", "urls.txt", "--output", "taken", "--workers", "0", *known]) == 0
    assert "1 documents removed, 0 reinstated; 59 documents in taken" in capsys.readouterr().out
    assert sorted(texts_of(Path("taken"))) == sorted(text for text in TEXTS if text != TEXTS[1])
    assert verify("taken", workers=1, against=str(out)).failures == []
    assert execute(["audit", "taken", "--sample", "1", *known]) == 0
    said = capsys.readouterr().out
    assert "59  agree: in the corpus" in said and "1  agree: taken out by takedown 1" in said and "0  differ" in said
    assert execute(["compare", str(out), "taken"]) == 0
    said = capsys.readouterr().out
    assert "B is a later version of A: a takedown removed 1 documents and reinstated 0" in said
    assert "tokens" not in said


def test_the_loader_says_so(out: Path) -> None:
    with pytest.raises(NoTokens, match="texts without tokens, which are needed here"):
        TokenStream(str(out), sequence_length=8, batch_size=1, seed=1)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tokenizer": {"path": "t.json"}}, "tokenizer: on given, the lane texts has no such stage, off is allowed"),
        ({"packed": {"length": 64}}, "packed: on given, the lane texts has no such stage, off is allowed"),
        ({"sources": [{"name": "s", "paths": ["in.jsonl"], "target": 9}]}, "the lane texts writes no tokens"),
        ({"sources": [{"name": "s", "paths": ["in.jsonl"], "meta_fields": ["text_id"]}]}, "'text_id' given"),
    ],
)
def test_what_a_recipe_may_not_ask_for(out: Path, changes: dict[str, object], problem: str) -> None:
    Path("other.yaml").write_text(yaml.safe_dump(yaml.safe_load(Path("texts.yaml").read_text()) | changes))
    with pytest.raises(RecipeError) as caught:
        load_recipe("other.yaml")
    assert problem in str(caught.value) and "\n" not in str(caught.value)


@one_commit_in_four
def test_its_test_passes(mine: Path) -> None:
    (mine / "test_jsonl.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(mine / "test_jsonl.py")],
        capture_output=True,
        text=True,
        cwd=mine,
        timeout=240,
    )
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout


def swapped(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    first, second, *others = TRUE_READ[0](files)
    yield from (second, first, *others)


def longer(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    yield from (text + b"!" for text in TRUE_READ[0](files))


def shorter(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    yield from list(TRUE_READ[0](files))[:-1]


def more(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    yield from (*TRUE_READ[0](files), b"more")


def failing(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    yield from islice(TRUE_READ[0](files), 1)
    raise KeyError("text")


def not_gzip(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    yield from islice(TRUE_READ[0](files), 1)
    raise gzip.BadGzipFile("Not a gzipped file")


TRUE_READ: list[Any] = []


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (swapped, "2 texts (that are not those of their ids|whose size is not that of their provenance)"),
        (longer, r"\d+ texts whose size is not that of their provenance; the first: row 0 has \d+ bytes"),
        (shorter, r"\d+ texts found, \d+ expected from the manifest"),
        (more, r"more texts found, \d+ expected from the manifest"),
        (failing, "the writer 'jsonl' cannot read it \\(KeyError: 'text'\\)"),
    ],
)
def test_verify_finds_other_texts(read: Any, found: str, out: Path) -> None:
    """Texts are compared with the provenance, whatever the file says of itself."""
    writer = load_recipe("texts.yaml").LANE.writer
    TRUE_READ[:] = [writer.read]
    writers.know_writer(replace(writer, read=read))
    report = verify(str(out), workers=1)
    assert report.failures and all(re.search(found, failure) for failure in report.failures), report.failures
    assert all("train/s/shard-" in failure or "validation/s/" in failure for failure in report.failures)
    if read not in (swapped, more):  # those may be of one size, and nobody asks for a document behind the last
        with pytest.raises(FormatError):
            list(refinery.corpus.open(out).documents(["text"]))


@one_commit_in_four
@pytest.mark.parametrize("read", [swapped, longer, shorter, not_gzip])
def test_no_other_text_stands_beside_an_id(read: Any, out: Path) -> None:
    """A single document is compared with its size and its id. What gzip and bz2 raise for damage is an OSError."""
    writer = load_recipe("texts.yaml").LANE.writer
    TRUE_READ[:] = [writer.read]
    sound = refinery.corpus.open(out, writer=writer)
    changed = refinery.corpus.open(out, writer=replace(writer, read=read))  # each has the writer that it was given
    ids = [id_ for batch in sound.documents(["id"]) for id_ in batch.column("id").to_pylist()]
    assert len({sound.text(id_) for id_ in ids}) == len(ids)
    wrong = 0
    for id_ in ids:
        try:
            assert changed.text(id_) == sound.text(id_)
        except FormatError as error:
            assert ".jsonl.zst" in str(error) or "train/s/shard-" in str(error) or "validation/s/shard-" in str(error)
            wrong += 1
    assert wrong


def test_verify_finds_damage(mine: Path, out: Path) -> None:
    copy = mine / "out" / "damaged"
    shutil.copytree(out, copy)
    shard = next(copy.glob("train/s/*.jsonl.zst"))
    shard.write_bytes(shard.read_bytes()[:-3])
    writers.know_writer_of("texts.yaml")
    failures = verify(str(copy), workers=1).failures
    assert [failure for failure in failures if shard.name in failure and "size" in failure], failures
    with pytest.raises(FormatError, match=f"{shard.name}: the writer 'jsonl' cannot read it|texts found"):
        list(refinery.corpus.open(copy).documents(["text"]))


def test_another_writer_of_that_name(out: Path) -> None:
    writer = load_recipe("texts.yaml").LANE.writer
    writers.know_writer(replace(writer, files={"text": ".jsonl.gz"}))
    with pytest.raises(FormatError, match=r"files .*jsonl.zst.* found, .*jsonl.gz.* expected of"):
        list(refinery.corpus.open(out).documents(["text"]))
    with pytest.raises(ValueError, match="writer: 'megatron' given, a name that no writer of ours has is allowed"):
        writers.know_writer(replace(writer, name="megatron"))


def test_tokens_of_another_writer_are_refused_before_anything_runs(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No reader would know them."""
    lane = load_recipe("texts.yaml").LANE
    own = replace(own_writers()["megatron"], name="mine")
    monkeypatch.setattr(sys.modules["jsonl_texts"], "LANE", replace(WEB, name="texts", writer=own))
    recipe = yaml.safe_load(Path("texts.yaml").read_text()) | {"tokenizer": {"path": "t.json"}}
    Path("tokens.yaml").write_text(yaml.safe_dump(recipe))
    assert lane.writer.name == "jsonl"
    assert execute(["refine", "tokens.yaml", "--output", "y", "--workers", "0"]) == 2
    assert "lane: the writer 'mine' of tokens given, 'megatron' alone is known to readers" in capsys.readouterr().err
    assert not Path("y").exists()
