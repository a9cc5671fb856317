"""One-step runs: every file keeps its shape, what goes is accounted for, and labels stand in for drops."""

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import refinery
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.steps.steps import near_layout
from tests.sampling import one_commit_in_four

QUICKLY: Mapping[str, Any] = {"workers": 0, "quiet": True}


def text(number: int, words: int = 60) -> str:
    """A text that resembles no other one."""
    digest = hashlib.sha256(str(number).encode()).digest()
    return (
        " ".join(f"word{digest[at % 32] * 7 + at * digest[(at * 3) % 32]}" for at in range(words)) + f" end {number}."
    )


# Spellings that no reader and writer of JSON would keep.
LINES = [
    b'{"id": "a0", "text": "%s", "n": 1e3, "big": 12345678901234567890123, "n": 1.0}\r\n' % text(0).encode(),
    b'{"text":"%s" , "id":"a1", "x": {"b": [1.0, -0.0], "a": "\\u00e9\\/"}}\n' % text(1).encode(),
    b"\n",
    b'{"id": "a2", "text": ""}\n',
    b'{"id": "a3", "text": null, "keep": 1}\n',
    b'  {"id": "a4", "text": "%s", "lone": "\\ud800"}\n' % text(0).encode(),
    b"{broken\n",
    b'{"id": "a5", "text": "%s"}' % text(2).encode(),
]
SCHEMA = pa.schema(
    [
        pa.field("when", pa.timestamp("us", "UTC")),
        pa.field("text", pa.large_string(), metadata={b"note": b"kept"}),
        pa.field("id", pa.string(), nullable=False),
        pa.field("tags", pa.list_(pa.int8())),
    ],
    metadata={b"made": b"by hand"},
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps") / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(b"".join(LINES))
    near = text(2).replace("end 2.", "end of two.")
    rows = [{"id": "b0", "text": text(1)}, {"id": "b1", "text": near}, {"id": "b2", "text": text(3)}]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    (folder / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    table = pa.table(
        {"when": [0, None], "text": [text(3), text(4)], "id": ["c0", "c1"], "tags": [[1, None], None]}, schema=SCHEMA
    )
    pq.write_table(table, folder / "deep" / "c.parquet", row_group_size=1)
    pq.write_table(table.slice(0, 0), folder / "d.parquet")
    return folder


def globs(inputs: Path) -> list[str]:
    return [f"{inputs}/**/*.jsonl*", f"{inputs}/**/*.parquet"]


@pytest.fixture(scope="module")
def near(inputs: Path) -> Path:
    """Where `dedup` at 0.8 wrote."""
    refinery.dedup(globs(inputs), inputs.parent / "near", near=0.8, **QUICKLY)
    return inputs.parent / "near"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def failures(accounts: Path) -> list[str]:
    return [*verify(str(accounts)).failures]


def rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_rows_that_stay_are_the_bytes_of_the_input(near: Path, inputs: Path) -> None:
    """Copies go in the order of paths, rows without a text stay, a broken line is a dead letter."""
    found = tree(near)
    assert sorted(found) == ["a.jsonl", "d.parquet", "deep/b.jsonl.gz", "deep/c.parquet"]
    assert found["a.jsonl"] == b"".join([*LINES[:2], *LINES[3:5], LINES[7]])
    whole = gzip.decompress((inputs / "deep" / "b.jsonl.gz").read_bytes()).splitlines(keepends=True)
    assert gzip.decompress(found["deep/b.jsonl.gz"]) == whole[2]
    table = pq.read_table(near / "deep" / "c.parquet")
    schema = pq.read_schema(inputs / "deep" / "c.parquet")
    assert table["id"].to_pylist() == ["c1"] and table.schema.equals(schema, check_metadata=True)
    assert pq.read_schema(near / "d.parquet").equals(schema, check_metadata=True)
    assert (schema.metadata, schema.field("text").metadata) == ({b"made": b"by hand"}, {b"note": b"kept"})


def test_all_of_it_is_accounted_for(near: Path) -> None:
    accounts = refinery.corpus.open(f"{near}.refinery")
    funnel = {row["stage"]: row for row in accounts.manifest.funnel}
    assert funnel["read"]["dead"]["BadJson"]["documents"] == 1
    assert funnel["read"]["dropped"]["empty"]["documents"] == 2
    assert funnel["exact-duplicates"]["dropped"]["exact-duplicate"]["documents"] == 3
    assert funnel["near-duplicates"]["dropped"]["near-duplicate"]["documents"] == 1
    assert sum(batch.num_rows for batch in accounts.removals()) == 4
    assert failures(Path(f"{near}.refinery")) == []
    assert "near_dup" in Path(f"{near}.yaml").read_text()


def test_the_same_command_again_does_nothing_and_another_one_is_refused(near: Path, inputs: Path) -> None:
    before = tree(near)
    refinery.dedup(globs(inputs), near, near=0.8, **QUICKLY)
    assert tree(near) == before
    with pytest.raises(RefineError, match="is not the recipe of this command"):
        refinery.dedup(globs(inputs), near, exact=True, **QUICKLY)


def test_a_run_that_stopped_while_it_wrote_goes_on(near: Path, inputs: Path, tmp_path: Path) -> None:
    """A file that is there already stays, one that is not is written, the accounts are the same."""
    refinery.dedup(globs(inputs), tmp_path / "out", near=0.8, **QUICKLY)
    accounts = tmp_path / "out.refinery"
    before = {**tree(tmp_path / "out"), **{name: data for name, data in tree(accounts).items() if "work/" not in name}}
    for name in ("manifest.json", "outputs.json", "work/shards.json", "work/shards/report.json"):
        (accounts / name).unlink()
    (tmp_path / "out" / "a.jsonl").unlink()
    refinery.dedup(globs(inputs), tmp_path / "out", near=0.8, **QUICKLY)
    after = {**tree(tmp_path / "out"), **{name: data for name, data in tree(accounts).items() if "work/" not in name}}
    assert {name for name in before if before[name] != after[name]} <= {"report.html"}
    assert tree(tmp_path / "out") == tree(near)


@one_commit_in_four
def test_the_same_bytes_by_two_workers(near: Path, inputs: Path, tmp_path: Path) -> None:
    refinery.dedup(globs(inputs), tmp_path / "out", near=0.8, workers=2, quiet=True)
    assert tree(tmp_path / "out") == tree(near)


def test_verify_finds_what_became_of_a_file(near: Path, tmp_path: Path) -> None:
    for name in ("near", "near.refinery"):
        for path, data in tree(near.parent / name).items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(data)
    place = tmp_path / "near" / "a.jsonl"
    place.write_bytes(place.read_bytes().replace(b"1e3", b"1e4"))
    (tmp_path / "near" / "d.parquet").unlink()
    found = failures(tmp_path / "near.refinery")
    assert len(found) >= 2 and all("a.jsonl" in line or "d.parquet" in line for line in found)


def test_labels_in_place_of_removals(inputs: Path, tmp_path: Path) -> None:
    refinery.dedup(globs(inputs), tmp_path / "out", near=0.8, annotate=True, **QUICKLY)
    found = tree(tmp_path / "out")
    lines = found["a.jsonl"].split(b"\n")
    assert [line for line in lines if line] and all(
        line.startswith(known.strip(b"\r\n").rstrip(b"}"))
        for line, known in zip(lines, [*LINES[:2], *LINES[3:6], LINES[7]], strict=False)
    )
    labels = {row["id"]: row for row in rows(found["a.jsonl"]) + rows(gzip.decompress(found["deep/b.jsonl.gz"]))}
    told = {name: (row["duplicate"], row["duplicate_of"], row["copies"], row["reason"]) for name, row in labels.items()}
    assert told == {
        "a0": (False, "", 2, ""),
        "a1": (False, "", 2, ""),
        "a2": (False, "", 0, "empty"),
        "a3": (False, "", 0, "empty"),
        "a4": (True, "a0", 0, "exact-duplicate"),
        "a5": (False, "", 2, ""),
        "b0": (True, "a1", 0, "exact-duplicate"),
        "b1": (True, "a5", 0, "near-duplicate"),
        "b2": (False, "", 2, ""),
    }
    clusters = {name: (row["cluster"], row["cluster_size"]) for name, row in labels.items()}
    assert clusters == {name: (name, 2) for name in ("a0", "a1", "a5", "b2")} | {
        "a2": ("", 0), "a3": ("", 0), "a4": ("a0", 2), "b0": ("a1", 2), "b1": ("a5", 2)
    }  # fmt: skip
    table = pq.read_table(tmp_path / "out" / "deep" / "c.parquet")
    assert table["cluster"].to_pylist() == ["b2", "c1"] and table["cluster_size"].to_pylist() == [2, 1]
    assert table["duplicate_of"].to_pylist() == ["b2", ""] and table.schema.names[:4] == SCHEMA.names
    assert pq.read_schema(tmp_path / "out" / "d.parquet").equals(table.schema)
    assert failures(tmp_path / "out.refinery") == []


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Path]:
    """A file of JSON lines, to be written by the test."""
    (tmp_path / "in").mkdir()
    yield tmp_path / "in" / "a.jsonl"


def test_redaction_changes_the_text_and_nothing_else(lines: Path, tmp_path: Path) -> None:
    kept = b'{"n": 1.0, "text": "nothing \\u00e9 to hide", "contact": "jane.doe@company-mail.org"}\n'
    lines.write_bytes(b'{"z": -0.0, "text": "write to jane.doe@company-mail.org, please", "n": 1e3}\n' + kept)
    refinery.redact(str(lines), tmp_path / "out", **QUICKLY)
    first, second = (tmp_path / "out" / "a.jsonl").read_bytes().splitlines(keepends=True)
    assert first == b'{"z": -0.0, "text": "write to <EMAIL>, please", "n": 1e3}\n' and second == kept
    assert failures(tmp_path / "out.refinery") == []


def test_a_filter_labels_or_drops(lines: Path, tmp_path: Path) -> None:
    rows_in = [{"id": "short", "text": "too short"}, {"id": "own", "text": "lorem ipsum " + text(1), "keep": "mine"}]
    lines.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows_in))
    refinery.filter(str(lines), tmp_path / "out", rules=["gopher", "c4"], annotate=True, **QUICKLY)
    short, own = rows((tmp_path / "out" / "a.jsonl").read_bytes())
    assert (short["keep"], short["reason"]) == (False, "gopher-too-few-words")
    assert (own["keep"], own["refinery_keep"], own["reason"].split("-")[0]) == ("mine", False, "gopher")
    cut = {
        "text": "Accept all cookies\n" + text(2) + " Seven. Eight. Nine. Ten. Eleven.\nuse javascript please now",
        "n": 1e3,
    }
    (tmp_path / "c4").mkdir()
    (tmp_path / "c4" / "c.jsonl").write_text(json.dumps(cut) + "\n")
    refinery.filter(f"{tmp_path}/c4/*", tmp_path / "cut", rules=["c4"], **QUICKLY)
    (changed,) = rows((tmp_path / "cut" / "c.jsonl").read_bytes())
    assert text(2) in changed["text"] and "javascript" not in changed["text"] and changed["n"] == 1e3
    assert failures(tmp_path / "cut.refinery") == []
    refinery.filter(str(lines), tmp_path / "dropped", rules=["gopher"], **QUICKLY)
    assert (tmp_path / "dropped" / "a.jsonl").read_bytes() == b""
    assert failures(tmp_path / "dropped.refinery") == []


def test_extraction_writes_a_new_field(lines: Path, tmp_path: Path) -> None:
    page = (
        "<html><body><nav>Menu</nav><p>"
        + "The main text of the page is this sentence here. " * 9
        + "</p></body></html>"
    )
    lines.write_bytes(
        b"".join(json.dumps(row).encode() + b"\n" for row in [{"html": page}, {"html": "<p></p>"}, {"n": 1}])
    )
    refinery.extract(str(lines), tmp_path / "out", html_field="html", **QUICKLY)
    first, empty, none = rows((tmp_path / "out" / "a.jsonl").read_bytes())
    assert first["text"].startswith("The main text") and first["reason"] == "" and first["html"] == page
    assert (empty["text"], empty["reason"], none["text"], none["reason"]) == ("", "empty", "", "empty")
    assert failures(tmp_path / "out.refinery") == []


def test_rows_that_nobody_looked_at_stay(lines: Path, tmp_path: Path) -> None:
    """Above a limit, or without the field: they are counted, and not in anybody's way."""
    rows_in = [{"id": "long", "text": text(1, 400)}, *({"id": n} for n in range(60)), {"id": "a", "text": text(2)}]
    lines.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows_in))
    limits = ["limits.max_record_bytes=2000"]
    found = refinery.dedup(str(lines), tmp_path / "out", exact=True, settings=limits, **QUICKLY)
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == lines.read_bytes()
    dropped = found.manifest.funnel[0]["dropped"]
    assert {reason: entry["documents"] for reason, entry in dropped.items()} == {"empty": 60, "too-large": 1}
    refinery.dedup(str(lines), tmp_path / "labels", exact=True, annotate=True, settings=limits, **QUICKLY)
    assert len(rows((tmp_path / "labels" / "a.jsonl").read_bytes())) == len(rows_in)
    assert failures(tmp_path / "out.refinery") == failures(tmp_path / "labels.refinery") == []


@pytest.mark.parametrize("name", ["b.parquet", "b.csv"])
def test_a_table_without_the_column_is_named(name: str, lines: Path, tmp_path: Path) -> None:
    lines.write_bytes(json.dumps({"text": text(1)}).encode() + b"\n")
    table = pa.table({"id": list(range(5)), "body": [text(1)] * 5})
    if name.endswith("parquet"):
        pq.write_table(table, tmp_path / "in" / name)
    else:
        (tmp_path / "in" / name).write_text("id,body\n" + "".join(f"{n},word\n" for n in range(5)))
    with pytest.raises(ValueError, match="--text-field: none given, and its files differ"):
        refinery.dedup(f"{tmp_path}/in/*", tmp_path / "out", exact=True, **QUICKLY)
    with pytest.raises(Exception, match=f"{name}: no column 'text'"):
        refinery.dedup(f"{tmp_path}/in/*", tmp_path / "out", exact=True, text_field="text", **QUICKLY)
    assert not (tmp_path / "out" / name).exists()


def test_languages_are_labels(lines: Path, tmp_path: Path) -> None:
    german = "Die Bibliothek der Stadt wurde im vorigen Jahrhundert gebaut und ist heute noch geöffnet. " * 3
    lines.write_bytes(json.dumps({"text": german}).encode() + b"\n" + b'{"text": "1234"}\n')
    refinery.detect_language(str(lines), tmp_path / "out", **QUICKLY)
    found, none = rows((tmp_path / "out" / "a.jsonl").read_bytes())
    assert found["language"] == "de" and found["language_score"] > 0.5
    assert type(none["language"]) is str and type(none["language_score"]) is float


@pytest.mark.parametrize(
    ("paths", "output", "problem"),
    [
        (["in/a.jsonl", "other/a.jsonl"], "out", "would both become"),
        (["**/*.jsonl"], "in/out", "would read in/out/in/a.jsonl, too; choose a folder that the inputs do not name"),
        (["in/a.jsonl"], ".", "a folder with a name is needed"),
        (["in/page.html"], "out", "cannot be copied row by row"),
        (["in/no.jsonl"], "out", "no.jsonl"),
    ],
)
def test_what_is_refused_before_anything_runs(
    paths: list[str], output: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("in", "other"):
        Path(folder).mkdir()
        Path(folder, "a.jsonl").write_text(json.dumps({"text": text(1)}) + "\n")
    Path("in/page.html").write_text("<p>text</p>")
    with pytest.raises(ValueError, match=problem):
        refinery.dedup(paths, output, exact=True, **QUICKLY)
    assert not Path("out").exists() and not Path("out.refinery").exists() and not Path("out.yaml").exists()


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
def test_near_copies_at_the_threshold_are_found(threshold: float) -> None:
    bands, size = near_layout(threshold)
    assert bands * size <= 112 and 1 - (1 - threshold**size) ** bands >= 0.9995
    if size < 112:  # larger bands would find fewer
        assert 1 - (1 - threshold ** (size + 1)) ** (112 // (size + 1)) < 0.9995


def test_messages_name_what_was_typed(lines: Path, tmp_path: Path) -> None:
    lines.write_text(json.dumps({"text": text(1)}) + "\n")
    step = {"layout": "shards", "annotate": True}
    for call, problem in (
        (lambda: refinery.dedup(f"{tmp_path}/no*", tmp_path / "out", **QUICKLY), f"'{tmp_path}/no*' given, no file"),
        (lambda: refinery.dedup(str(lines), tmp_path / "out", near=2, **QUICKLY), "--near: 2 given"),
        (lambda: refinery.dedup(str(lines), tmp_path / "out", text_field="b", **QUICKLY), "--text-field: 'b' given"),
        (lambda: refinery.dedup(str(lines), tmp_path / "out", **step, **QUICKLY), "--annotate: given beside --layout"),
        (lambda: refinery.filter(str(lines), tmp_path / "out", language=["xx"], **QUICKLY), "--language: xx given"),
        (lambda: refinery.detect_language(str(lines), tmp_path / "out", keep=["xx"], **QUICKLY), "--keep: xx given"),
        (lambda: refinery.extract(str(lines), tmp_path / "out", html_field="b", **QUICKLY), "--html-field: 'b' given"),
    ):
        with pytest.raises(ValueError) as raised:
            call()
        assert str(raised.value).startswith(problem)
    refinery.dedup(str(lines), tmp_path / "out", exact=True, **QUICKLY)
    with pytest.raises(ValueError, match=r"^--against: .*nowhere is not a corpus"):
        refinery.dedup(str(lines), tmp_path / "new", against=[f"{tmp_path}/nowhere"], **QUICKLY)
    lines.write_text(json.dumps({"text": text(2)}) + "\n")
    with pytest.raises(RefineError, match=r"other bytes .*Choose another --output\.$"):
        refinery.dedup(str(lines), tmp_path / "out", exact=True, **QUICKLY)


def test_what_a_filter_drops_is_listed(lines: Path, tmp_path: Path) -> None:
    lines.write_text("".join(json.dumps({"text": f"short {n}"}) + "\n" for n in range(20)))
    found = refinery.filter(str(lines), tmp_path / "out", rules=["gopher"], **QUICKLY)
    assert sum(batch.num_rows for batch in found.rejects()) == 20


def test_one_limit_of_sizes_for_reader_and_extraction(lines: Path, tmp_path: Path) -> None:
    """A row above the limits stays, whichever of them it exceeds."""
    lines.write_text("".join(json.dumps({"text": text(n, 400)}) + "\n" for n in (1, 1, 2)))
    for limit, left in ("limits.max_record_bytes=2000", 3), ("limits.max_record_bytes=50000", 2):
        out = tmp_path / limit.rpartition("=")[2]
        refinery.dedup(str(lines), out, exact=True, settings=[limit, "limits.max_decompressed_bytes=60000"], **QUICKLY)
        assert len(rows((out / "a.jsonl").read_bytes())) == left
        assert "max_raw_bytes: " + limit.rpartition("=")[2] in Path(f"{out}.yaml").read_text()
    small = ["extract.max_raw_bytes=2000"]
    refinery.dedup(str(lines), tmp_path / "small", exact=True, settings=small, **QUICKLY)
    assert (tmp_path / "small" / "a.jsonl").read_bytes() == lines.read_bytes()
