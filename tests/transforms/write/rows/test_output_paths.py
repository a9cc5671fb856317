"""Where outputs go: below the first folder of the pattern, under the very names of the inputs."""

import os
import unicodedata
from pathlib import Path

import pytest

from refinery.transforms.read.find_files import find_pattern
from refinery.transforms.read.params import SourceParams
from refinery.transforms.write.rows.output_paths import output_path, output_paths

NAMES = [
    "a b.jsonl", "a%20b.jsonl", "a+b.jsonl", "-n.jsonl", "data[1].jsonl", "data1.jsonl", "x#y?z.jsonl", "50%.jsonl",
    "{a,b}.jsonl", unicodedata.normalize("NFC", "café.jsonl"), unicodedata.normalize("NFD", "café.jsonl"),
    "数据/—.jsonl",
    "a.jsonl.gz", "a.jsonl",
]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "path", "place"),
    [
        ("in/**/*.jsonl", "in/x/a.jsonl", "x/a.jsonl"),
        ("in/**/*.jsonl", "in/a.jsonl", "a.jsonl"),
        ("in/*.jsonl", "in/a.jsonl", "a.jsonl"),
        ("in/", "in/x/a.jsonl", "x/a.jsonl"),
        ("in", "in/x/a.jsonl", "x/a.jsonl"),
        ("./in/*", "in/a.jsonl", "a.jsonl"),
        ("in/x/*.jsonl", "in/x/a.jsonl", "x/a.jsonl"),
        ("in/x/a.jsonl", "in/x/a.jsonl", "x/a.jsonl"),
        ("in/a.jsonl", "in/a.jsonl", "a.jsonl"),
        ("a.jsonl", "a.jsonl", "a.jsonl"),
        ("*.jsonl", "a.jsonl", "a.jsonl"),
        ("in*/*.jsonl", "in1/a.jsonl", "in1/a.jsonl"),
        ("**/*.jsonl", "in/a.jsonl", "in/a.jsonl"),
        (".", "in/a.jsonl", "in/a.jsonl"),
        ("in[1]/a.jsonl", "in[1]/a.jsonl", "a.jsonl"),
        ("in[1]", "in[1]/a.jsonl", "a.jsonl"),
        ("{in,on}/a.jsonl", "in/a.jsonl", "in/a.jsonl"),
        ("../../in/x/*.jsonl", "../../in/x/a.jsonl", "x/a.jsonl"),
        ("..", "../in/a.jsonl", "in/a.jsonl"),
        ("/data/in/**/*.jsonl", "/data/in/x/a.jsonl", "x/a.jsonl"),
        ("/data/in/", "/data/in/x/a.jsonl", "x/a.jsonl"),
        ("/data/in/x/a.jsonl", "/data/in/x/a.jsonl", "a.jsonl"),
        ("/data/in[1]/", "/data/in[1]/x/a.jsonl", "x/a.jsonl"),
        ("/*/in/a.jsonl", "/data/in/a.jsonl", "data/in/a.jsonl"),
        ("gs://bucket/in/**/*.jsonl", "gs://bucket/in/x/a.jsonl", "x/a.jsonl"),
        ("s3://bucket/", "s3://bucket/x/a b.jsonl", "x/a b.jsonl"),
        ("https://h.example/in/x/a%20b.jsonl?key=1", "https://h.example/in/x/a%20b.jsonl?key=1", "x/a%20b.jsonl"),
        ("hf://datasets/org/name", "hf://datasets/org/name@c0ffee/data/a.parquet", "data/a.parquet"),
    ],
)
def test_the_first_folder_is_left_out(pattern: str, path: str, place: str) -> None:
    assert output_path(pattern, path) == place


@pytest.mark.parametrize("pattern", ["in/", "in", "./in", "in/**"])
def test_every_name_stays_as_it_is(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        Path("in", name).parent.mkdir(parents=True, exist_ok=True)
        Path("in", name).write_bytes(b"")
    for given, beside in ((pattern, ""), (f"{tmp_path}/{pattern}", f"{tmp_path}/")):
        files = [file.path for file in find_pattern(given, SourceParams(name="s", paths=(given,)))]
        places = output_paths((given, path) for path in files)
        assert {os.path.normpath(path): f"{beside}in/{place}" for path, place in places.items()} == {
            path: path for path in files
        }
        assert sorted(places.values()) == sorted(NAMES)


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ([("in/*", "in/a.jsonl"), ("on/*", "on/a.jsonl")], ("in/a.jsonl", "on/a.jsonl")),
        ([("/x/a.jsonl", "/x/a.jsonl"), ("/y/a.jsonl", "/y/a.jsonl")], ("/x/a.jsonl", "/y/a.jsonl")),
        ([("in/*", "in/a"), ("on/**", "on/a/b/c.jsonl")], ("in/a", "on/a/b/c.jsonl")),
        ([("on/**", "on/a/b/c.jsonl"), ("in/*", "in/a")], ("in/a", "on/a/b/c.jsonl")),
        ([("https://u:secret@h.example/in/a", "https://u:secret@h.example/in/a"), ("in/*", "in/a")], ("h.ex", "in/a")),
    ],
)  # fmt: skip
def test_outputs_that_would_meet_are_an_error_that_names_both(
    found: list[tuple[str, str]], named: tuple[str, str]
) -> None:
    with pytest.raises(ValueError, match="would") as error:
        output_paths(found)
    assert all(name in str(error.value) for name in named)
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_two_patterns_mean_is_there_once() -> None:
    assert output_paths([("in/x/*", "in/x/a"), ("in/**", "in/x/a"), ("in/**", "in/b")]) == {
        "in/x/a": "x/a",
        "in/b": "b",
    }


@pytest.mark.parametrize("path", ["gs://b/../../etc/a", "gs://b/x//a", "gs://b/in/..", "gs://b/", "https://h.example/"])
def test_nothing_lies_outside_of_the_output_folder(path: str) -> None:
    with pytest.raises(ValueError, match="has no place below the output folder"):
        output_path(path, path)
