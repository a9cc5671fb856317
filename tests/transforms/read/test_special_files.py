"""What a pattern matches and nobody can read is named, not left out; addresses in errors have no credentials."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from refinery.transforms.read.find_files import find_files, without_credentials
from refinery.transforms.read.params import SourceParams


def found(*paths: str, **fields: tuple[str, ...]) -> list[str]:
    return [os.path.basename(file.path) for file in find_files(SourceParams(name="web", paths=paths, **fields))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text("{}\n")
    (tmp_path / "inner.jsonl").mkdir()
    return tmp_path


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a FIFO, device or socket": os.mkfifo,
    "a link that leads nowhere": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("what", SPECIAL)
def test_what_is_no_file_is_named(folder: Path, what: str) -> None:
    assert found(f"{folder}/*.jsonl") == found(str(folder)) == ["a.jsonl"]  # a folder is none of a glob's files
    SPECIAL[what](folder / "b.jsonl")
    globs = () if "link" in what else (f"{folder}/*.jsonl",)  # a glob matches no such link
    for path in (*globs, str(folder), f"{folder}/"):
        with pytest.raises(ValueError, match=rf"source web: paths: .*/b\.jsonl' is {what}, files are allowed"):
            found(path)
    assert found(f"{folder}/a*.jsonl") == ["a.jsonl"]


def test_hidden_names_are_left_out_of_a_folder_whatever_they_are(folder: Path) -> None:
    os.mkfifo(folder / ".pipe")
    os.mkfifo(folder / "_pipe")
    assert found(str(folder)) == ["a.jsonl"]


def test_braces_are_a_choice_or_a_part_of_a_name(folder: Path) -> None:
    for name in ("b.jsonl", "{a}.jsonl", "c[1].jsonl"):
        (folder / name).write_text("{}\n")
    assert found(f"{folder}/{{a,b}}.jsonl") == found(f"{folder}/{{a,b}}.json*") == ["a.jsonl", "b.jsonl"]
    assert found(f"{folder}/{{a}}.jsonl") == ["{a}.jsonl"]
    assert found(f"{folder}/c[1].jsonl") == ["c[1].jsonl"]
    with pytest.raises(ValueError, match="no file matches it"):
        found(f"{folder}/{{x,y}}.jsonl")


def test_a_list_names_files_alone(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for line, problem in (("pipe", "is a FIFO, device or socket"), ("inner.jsonl", "is a folder, files are allowed")):
        (folder / "list.txt").write_text(f"{line}\n")
        with pytest.raises(ValueError, match=rf"source web: path_lists: .*{line}' {problem}"):
            find_files(SourceParams(name="web", path_lists=(f"{folder}/list.txt",)))


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("https://user:word@host.example/a?token=x is not there", "https://host.example/a is not there"),
        ("'https://user@host.example/a.gz'", "'https://host.example/a.gz'"),
        ("crawl-?.jsonl: no file", "crawl-?.jsonl: no file"),
        ("s3://bucket/a?versionId=1 and gs://b/c?x", "s3://bucket/a and gs://b/c"),
    ],
)
def test_credentials_in_addresses(said: str, left: str) -> None:
    assert without_credentials(said) == left
