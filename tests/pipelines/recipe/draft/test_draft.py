"""`refinery init`: what the recipe says of files, and that hostile files and names cost a line each."""

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

from benchmarks.startup import start
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe.draft import list_files, survey
from refinery.pipelines.recipe.draft.draft import Draft, draft_recipe, slug
from refinery.pipelines.recipe.draft.yaml_text import comment, quoted
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.transforms.core.data_text.plain_yaml import load_yaml
from refinery.transforms.read.find_files import find_files
from refinery.transforms.read.plan import LimitParams, plan_sources
from tests.transforms.read_fixtures import page

ENGLISH = "The ship left the harbour before the storm, and nobody on the pier saw the light of its lamps again. " * 4
GERMAN = "Das Schiff verließ den Hafen vor dem Sturm, und niemand auf der Mole sah das Licht der Lampen wieder. " * 4


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


TEXTS = lines({"text": ENGLISH, "url": "https://a.example/"})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(**files: bytes) -> None:
    """Files by name; `__` in it stands for a slash, `_dot_` for a dot."""
    for name, data in files.items():
        path = Path(name.replace("__", "/").replace("_dot_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def drafted(*arguments: str, **more: Any) -> tuple[Draft, list[dict[str, Any]]]:
    """A draft, and its sources as a run would read them."""
    draft = draft_recipe(arguments, "recipe.yaml", **more)
    Path("recipe.yaml").write_text(draft.text)
    recipe = load_recipe("recipe.yaml")
    for source, params in zip(draft.sources, recipe.sources, strict=True):
        if source.survey is not None and not draft.is_cut:
            assert {file.path for file in find_files(params)} == {file.path for file in source.survey.group.files}
    return draft, yaml.safe_load(draft.text)["sources"]


def test_a_folder_of_many_kinds(here: Path) -> None:
    table = pa.table({"content": [ENGLISH], "id": ["1"], "timestamp": ["2024-01-01"], "source_url": ["u"]})
    put(data__books__a_dot_jsonl=TEXTS, data__books__b_dot_jsonl=TEXTS, data__notes_dot_txt=ENGLISH.encode())
    put(data__crawl__c_dot_warc_dot_gz=gzip.compress(page(1), mtime=0), data__x_dot_bin=bytes(99))
    put(data__page_dot_csv=f'body,n\n"{ENGLISH}",1\n'.encode(), data___hidden_dot_jsonl=b"{broken")
    pq.write_table(table, "data/t.parquet")
    draft, sources = drafted("data")
    found = {source["name"]: source for source in sources}
    assert found["books"] == {"name": "books", "paths": ["data/books/*.jsonl"]}
    assert found["t"] == {
        "name": "t",
        "paths": ["data/t.parquet"],
        "url_field": "source_url",
        "date_field": "timestamp",
        "id_field": "id",
        "text_field": "content",
    }
    assert found["c"]["domain"] == "web"
    assert found["page"]["text_field"] == "body"
    assert "extract: {engine: blocks}" in draft.text
    assert "url_dup: on" in draft.text
    assert [line for line in draft.problems if "data/x.bin" in line and "unknown endings" in line]
    assert "_hidden" not in draft.text
    for key in ("language", "secrets", "heuristics", "near_dup", "toxicity", "pii", "tokenizer", "shards"):
        before = draft.text.splitlines()
        at = next(number for number, line in enumerate(before) if line.startswith(f"{key}:"))
        assert before[at - 1].startswith("# "), key


def test_languages_above_a_share_are_kept_and_others_are_counted(here: Path) -> None:
    records = [{"text": ENGLISH}] * 60 + [{"text": GERMAN}] * 38 + [{"text": "Лодка ушла в море перед бурей. " * 9}] * 2
    put(a_dot_jsonl=lines(*records))
    draft, _ = drafted("a.jsonl")
    assert "language: {languages: [en, de]}" in draft.text
    assert "(en 60%, de 38%)" in draft.text
    assert "Others are dropped: ru 2." in draft.text.replace("\n# ", " ")


def test_languages_that_yaml_takes_for_something_else(here: Path) -> None:
    put(a_dot_jsonl=lines(*[{"text": "Skipet forlot havnen før stormen, og ingen på kaien så lyset igjen. " * 5}] * 3))
    draft, _ = drafted("a.jsonl")
    assert 'language: {languages: ["no"]}' in draft.text
    assert list(load_recipe("recipe.yaml").language.languages) == ["no"]  # type: ignore[attr-defined]


def test_files_of_a_folder_that_differ_become_sources(here: Path) -> None:
    put(data__a__1_dot_jsonl=TEXTS, data__b__1_dot_jsonl=lines({"content": ENGLISH}), data__b__2_dot_jsonl=TEXTS)
    _, sources = drafted("data")
    fields = {source["paths"][0]: source.get("text_field") for source in sources}
    assert fields == {"data/a/1.jsonl": None, "data/b/1.jsonl": "content", "data/b/2.jsonl": None}


def test_several_fields_are_left_to_a_person(here: Path) -> None:
    put(a_dot_jsonl=lines({"content": ENGLISH, "body": ENGLISH}))
    draft, sources = drafted("a.jsonl")
    assert sources == [{"name": "a", "paths": ["a.jsonl"]}]
    assert any("content and body hold texts" in problem and "set `text_field`" in problem for problem in draft.problems)


def test_markup_in_a_field_is_extracted(here: Path) -> None:
    put(a_dot_jsonl=lines({"id": "1", "html": f"<html><body><p>{ENGLISH}</p></body></html>"}))
    _, sources = drafted("a.jsonl")
    assert sources[0]["text_field"] == "html"
    assert sources[0]["content"] == "html"


def test_what_a_shell_expanded_is_put_together(here: Path) -> None:
    names = [f"d/{number}.jsonl" for number in range(4)]
    put(**{name.replace("/", "__").replace(".", "_dot_"): TEXTS for name in names})
    assert drafted(*names)[1] == [{"name": "d", "paths": ["d/*.jsonl"]}]
    put(d__other_dot_jsonl=TEXTS)  # a pattern would mean it, too
    assert drafted(*names)[1][0]["paths"] == names


def test_names_keep_their_meaning(here: Path) -> None:
    names = ['a "b": #c.jsonl', "[x]*?.jsonl", "no", "{a,b}.jsonl", "- e.jsonl", "it's ‮.jsonl", "&a !b %c @d.jsonl"]
    folder = Path("in put: [1]")
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(TEXTS)
    (folder / "x1.jsonl").write_bytes(b"")
    (folder / "line\nbreak: {x: y}.jsonl").write_bytes(TEXTS)
    kept = [name for name in names if name.isprintable()]
    for name in kept:
        _, (source,) = drafted(str(folder / name))
        assert [task.path for task in plan_sources(load_recipe("recipe.yaml").sources)] == [str(folder / name)]
        assert source.get("format") == ("jsonl" if name == "no" else None)
    draft, _ = drafted(str(folder))
    refused = [problem for problem in draft.problems if "printable" in problem]
    assert len(refused) == 2
    assert all(problem.isprintable() for problem in draft.problems)


@pytest.mark.parametrize(
    "text",
    ["no", "on", "1", "~", "", " x", "a: b", "a #b", "'", '"', "\\", "\n", "\x85", "\u2028", "{", "é", "1e3", "-"],
)
def test_quoted_texts_are_read_as_they_are(text: str) -> None:
    for value in (text, f"{text}x", f"x{text}"):
        assert load_yaml(f"[{quoted(value)}]", "test") == [value]
        assert yaml.safe_load(f"key: {quoted(value)}") == {"key": value}
    assert all(line.startswith("  #") for line in comment(f"x{text}\nname: y " * 30, "  "))


BROKEN = {
    "huge.jsonl": b'{"text": "' + b"x" * (4 << 20),
    "binary.jsonl": bytes(range(256)) * 99,
    "deep.jsonl": b'{"text": ' + b"[" * 99_999,
    "bomb.jsonl.gz": gzip.compress(b'{"text": "' + bytes(4 << 20), mtime=0),
    "bomb.jsonl.zst": zstandard.compress(bytes(1 << 23)),
    "cut.parquet": b"PAR1" + bytes(99) + b"PAR1",
    "cut.warc.gz": gzip.compress(page(1), mtime=0)[:40],
    "empty.jsonl": b"",
    "array.json": b'[{"text": "x"},\n {"text": "y"}]',
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_damaged_or_hostile_file_costs_a_line(here: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "LIMITS", LimitParams(max_record_bytes=1 << 20, max_decompressed_bytes=1 << 21))
    Path("in").mkdir()
    Path("in", name).write_bytes(BROKEN[name])
    with pytest.raises(ValueError, match="no file holds documents") as error:
        draft_recipe(["in"], "recipe.yaml")
    assert len(str(error.value).splitlines()) == 2, str(error.value)
    assert str(error.value).isprintable() or "\n" in str(error.value)
    Path("in", "good.txt").write_text(ENGLISH)
    draft, sources = drafted("in")
    assert sources == [{"name": "good", "paths": ["in/good.txt"]}]
    assert len(draft.problems) == 1 and draft.problems[0].isprintable()


def test_a_file_that_takes_too_long_is_given_up(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(*_: object) -> None:
        while True:
            pass

    put(a_dot_jsonl=TEXTS)
    monkeypatch.setattr(survey, "SECONDS", 0.2)
    monkeypatch.setattr(survey, "_read", forever)
    with pytest.raises(ValueError, match=r"a\.jsonl: was not read within 0\.2 seconds"):
        draft_recipe(["a.jsonl"], "recipe.yaml")


def test_special_files_and_missing_ones_cost_a_line(here: Path) -> None:
    put(d__a_dot_jsonl=TEXTS)
    os.mkfifo("d/pipe.jsonl")
    Path("d/loose.jsonl").symlink_to("nowhere")
    Path("d/round").symlink_to("..")
    draft, sources = drafted("d", "nowhere/*.jsonl", "ftp://host/x")
    assert sources == [{"name": "a", "paths": ["d/a.jsonl"]}]
    assert sorted(problem.split(":")[0] for problem in draft.problems) == [
        "d/loose.jsonl",
        "d/pipe.jsonl",
        "ftp",
        "nowhere/*.jsonl",
    ]


def test_a_walk_is_bounded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_files, "MOST_NAMES", 3)
    put(**{f"d__{number}_dot_jsonl": TEXTS for number in range(9)})
    draft, sources = drafted("d")
    assert len(sources) == 1
    assert any("names; only the first were read" in problem for problem in draft.problems)


def test_records_of_source_code_have_their_lane(here: Path) -> None:
    record = {"repo": "r", "commit": "c", "path": "a.c", "content": "int main(void) { return 0; }\n"}
    put(a_dot_jsonl=lines(record))
    draft, sources = drafted("a.jsonl")
    assert load_recipe("recipe.yaml").lane == "code"
    assert sources[0]["text_field"] == "content"
    assert "code_heuristics: on" in draft.text


def test_a_clone_is_to_be_acquired_first(here: Path) -> None:
    put(src__main_dot_c=b"int x;")
    subprocess.run(["git", "init", "-q", "src"], check=True)
    draft, sources = drafted("src")
    assert load_recipe("recipe.yaml").lane == "code"
    assert sources == [{"name": "repos", "paths": ["repos/files/*.jsonl.zst"]}]
    assert draft.commands[0].startswith("refinery acquire git --clone src --commit")
    put(tree__main_dot_c=b"int x;", tree__b_dot_py=b"x = 1", tree__z_dot_tar_dot_gz=b"")
    draft, _ = drafted("tree")
    assert draft.commands[0].startswith("refinery acquire git repositories.yaml")
    put(text_dot_txt=ENGLISH.encode())
    draft, sources = drafted("text.txt", "src")
    assert [source["name"] for source in sources] == ["text"]
    assert any("`refinery init src` writes one" in problem for problem in draft.problems)


@pytest.mark.parametrize(
    ("text", "name"), [("A b/ü.X", "a-b-.x"), ("", "files"), ("..", "files"), ("x" * 99, "x" * 48)]
)
def test_names_of_sources_are_names(text: str, name: str) -> None:
    assert slug(text) == name


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_once_and_says_what_to_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(**{"my texts__a_dot_jsonl": TEXTS})
    assert execute(["init", "my texts", "--output", "r e.yaml", "--name", "it's: mine"]) == 0
    said = capsys.readouterr()
    assert "refinery doctor 'r e.yaml' --output out/it-s-mine\n" in said.out
    assert said.out.index("refinery train-tokenizer") < said.out.index("refinery doctor")  # which wants the tokenizer
    assert "refinery refine 'r e.yaml' --output out/it-s-mine\n" in said.out
    assert "reading my texts/a.jsonl (1 of 1)" in said.err
    written = Path("r e.yaml").read_bytes()
    assert load_recipe("r e.yaml").name == "it's: mine"
    assert execute(["init", "my texts", "--output", "r e.yaml"]) == 2
    assert "exists" in capsys.readouterr().err
    assert Path("r e.yaml").read_bytes() == written
    assert execute(["init", "my texts", "--output", "r e.yaml", "--overwrite"]) == 0
    assert Path("r e.yaml").read_bytes() != written


def test_nothing_is_written_where_nothing_can_be_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["init", "nowhere", "--output", "r.yaml"]) == 2
    assert "nowhere: no file matches it" in capsys.readouterr().err
    assert not list(here.iterdir())


def test_it_imports_no_beam(here: Path) -> None:
    put(a_dot_jsonl=TEXTS)
    found = start("init", str(here / "a.jsonl"), "--output", str(here / "r.yaml"))
    assert found.code == 0, found.said
    assert not {name.partition(".")[0] for name in found.modules} & {"apache_beam", "torch", "grpc"}


def test_without_a_network_it_says_what_to_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["init", "https://user:secret@127.0.0.1:9/a.jsonl?key=secret"]) == 2
    said = capsys.readouterr()
    assert "secret" not in said.out + said.err


@pytest.mark.parametrize("arguments", [("d",), ("d/",), ("d/*.jsonl",), ("d/a.jsonl", "d/b.jsonl")])
@pytest.mark.parametrize("other", ["bad\n.jsonl", "fifo.jsonl"])
def test_a_pattern_never_means_a_name_that_was_refused(here: Path, arguments: tuple[str, ...], other: str) -> None:
    put(d__a_dot_jsonl=TEXTS, d__b_dot_jsonl=TEXTS)
    if other.startswith("fifo"):
        os.mkfifo(f"d/{other}")
    else:
        Path("d", other).write_bytes(TEXTS)
    _, sources = drafted(*arguments)
    assert [source["paths"] for source in sources] == [["d/a.jsonl", "d/b.jsonl"]]


def test_a_file_of_an_earlier_argument_is_in_one_source_alone(here: Path) -> None:
    put(d__s__a_dot_jsonl=TEXTS, d__s__b_dot_jsonl=TEXTS, d__t__c_dot_jsonl=TEXTS)
    _, sources = drafted("d/s/a.jsonl", "d")
    assert [source["paths"] for source in sources] == [["d/s/b.jsonl", "d/t/c.jsonl"], ["d/s/a.jsonl"]]


def test_a_folder_that_cannot_be_listed_has_its_files_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files can be read by who knows their names."""
    put(d__a_dot_jsonl=TEXTS, d__b_dot_jsonl=TEXTS)

    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refused)
    draft = draft_recipe(["d/a.jsonl", "d/b.jsonl"], "recipe.yaml")
    assert [source.paths for source in draft.sources] == [["d/a.jsonl", "d/b.jsonl"]]
