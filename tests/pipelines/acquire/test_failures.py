"""What goes wrong in one repository is its own: the list goes on, and a clone loses a file, not all of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.storage.store import LocalStore
from refinery.pipelines.acquire import git_objects, take, tree_files
from refinery.pipelines.acquire.take import LOST, take_tree
from refinery.pipelines.acquire.tree_files import Deadline, Found, RepositoryError
from tests.pipelines.acquire.repositories import (
    APACHE,
    FILE,
    FOLDER,
    MIT,
    acquire,
    blob,
    commit,
    needs_git,
    new_repository,
    records,
    report,
    repository_of,
    texts,
    tree,
)
from tests.pipelines.acquire.test_tarballs import member, save, tar_of

LINKS: dict[str, bytes] = {
    "too long": b"gitdir: " + b"x" * 4000,
    "a long name": b"gitdir: /" + b"y/" * 1900,
    "a NUL": b"gitdir: a\0b",
    "no UTF-8": b"gitdir: \xff\xfe",
    "nothing": b"",
    "a folder that is none": b"gitdir: /dev/null",
}


@needs_git
@pytest.mark.parametrize("link", LINKS)
def test_a_hostile_link_to_a_repository_costs_that_entry(tmp_path: Path, link: str) -> None:
    made = repository_of(tmp_path / "good", {"x.c": b"good\n"})
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / ".git").write_bytes(LINKS[link])
    entries = [{"clone": str(tmp_path / name), "commit": made, "name": name} for name in ("bad", "good")]
    with pytest.raises(RepositoryError, match=r"^bad: (its .git|it is not a git)"):
        acquire(tmp_path / "out", *entries)
    assert texts(tmp_path / "out") == {"x.c": "good\n"}


@pytest.mark.parametrize(
    "error", [ValueError("a\x1b[2J"), OSError(36, "File name too long"), RecursionError(), KeyError("x")]
)
def test_any_error_of_reading_is_the_repositorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    entries = [save(tmp_path / f"{name}.tar", tar_of(member("t/x.c", b"good\n"))) | {"name": name} for name in "ab"]
    real = take.text_of
    calls = []

    def failing(data: bytes) -> tuple[str, str]:
        calls.append(data)
        if len(calls) == 1:
            raise error
        return real(data)

    monkeypatch.setattr(take, "text_of", failing)
    with pytest.raises(RepositoryError, match=r"^a: it cannot be read: [ -~]+\n1 of 2"):
        acquire(tmp_path / "out", *entries)
    assert texts(tmp_path / "out") == {"x.c": "good\n"}


def test_an_output_that_cannot_be_written_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [save(tmp_path / f"{name}.tar", tar_of(member("t/x.c", b"x\n"))) | {"name": name} for name in "ab"]
    said = []

    def failing(self: Any, *given: Any) -> None:
        said.append(given)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(LocalStore, "create", failing)
    with pytest.raises(OSError, match="Input/output") as raised:
        acquire(tmp_path / "out", *entries)
    assert not isinstance(raised.value, RepositoryError) and len(said) == 1


def test_an_error_of_the_writer_inside_a_repository_is_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [save(tmp_path / "a.tar", tar_of(member("t/x.c", b"x\n"))) | {"name": "a"}]

    def failing(self: Any, record: dict[str, Any]) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("refinery.pipelines.acquire.shard_files.ShardWriter.add", failing)
    with pytest.raises(OSError, match="Input/output") as raised:
        acquire(tmp_path / "out", *entries)
    assert not isinstance(raised.value, RepositoryError)


@needs_git
def test_a_clone_without_one_object_loses_that_file_by_name(tmp_path: Path) -> None:
    """Below a licence file that is missing, the licence is unknown, not the one further up."""
    made = new_repository(tmp_path / "a")
    gone, also = "2" * 40, "3" * 40
    inside = tree(made, (FILE, b"LICENSE", also), (FILE, b"y.c", blob(made, b"y\n")))
    root = tree(
        made,
        (FILE, b"LICENSE", blob(made, MIT)),
        (FILE, b"gone\x1b.c", gone),
        (FILE, b"gone.c", gone),
        (FOLDER, b"inside", inside),
        (FILE, b"x.c", blob(made, b"x\n")),
    )
    said = acquire(tmp_path / "out", {"clone": str(made), "commit": commit(made, root)})
    found = {record["path"]: record["repo_license"] for record in records(tmp_path / "out")}
    assert found == {"LICENSE": "MIT", "x.c": "MIT", "inside/y.c": LOST}
    told = report(tmp_path / "out")
    assert told["missing"] == ["gone.c", "inside/LICENSE"]
    assert told["skipped"] == {"missing": 2, "path-control": 1}
    assert any("missing: gone.c, inside/LICENSE" in line for line in said)


class Counted:
    """A tree of so many folders with a licence file each, all of one place; counts what is read."""

    def __init__(self, folders: int) -> None:
        self.folders, self.read_places = folders, 0

    def entries(self) -> Any:
        for number in range(self.folders):
            yield Found(b"%d/LICENSE" % number, "", len(APACHE), "place")

    def read(self, places: Sequence[Any]) -> Any:
        for _ in places:
            self.read_places += 1
            yield APACHE


def test_a_licence_in_many_folders_is_identified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = take.licence_in

    def counting(path: str, text: str) -> str:
        looked.append(text)
        return real(path, text)

    monkeypatch.setattr(take, "licence_in", counting)
    made: list[dict[str, Any]] = []
    counted = Counted(150)
    take_tree(counted, "a", "c" * 40, 10_000, made.append, Deadline(60))
    assert len(looked) == 1 and counted.read_places == 151
    assert {record["repo_license"] for record in made} == {"Apache-2.0"} and len(made) == 150


def passing(seconds: list[float]) -> Callable[[], float]:
    """A clock that moves on by a second whenever it is looked at."""

    def now() -> float:
        seconds[0] += 1
        return seconds[0]

    return now


@needs_git
def test_the_time_of_a_repository_is_bounded_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = repository_of(tmp_path / "a", {f"{number}.c": b"%d\n" % number for number in range(40)})
    tarball = save(tmp_path / "b.tar", tar_of(*(member(f"t/{number}.c", b"x\n") for number in range(40))))
    rows = tmp_path / "c.jsonl"
    rows.write_text('{"repo": "a/b", "commit": "%s", "path": "x.c", "content": "x"}\n' % ("c" * 40) * 40)
    monkeypatch.setattr(tree_files.time, "monotonic", passing([0.0]))
    for entry in ({"clone": str(tmp_path / "a"), "commit": made}, tarball, {"files": str(rows)}):
        with pytest.raises(RepositoryError, match="more than 20 s in all"):
            acquire(tmp_path / "out", entry, timeout=5)


@needs_git
def test_the_bytes_of_all_objects_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = repository_of(tmp_path / "a", {"a/LICENSE": MIT, "b/LICENSE": MIT + b" ", "x.c": b"x" * 100})
    monkeypatch.setattr(git_objects, "MAX_INFLATED", 600)
    with pytest.raises(RepositoryError, match="objects have more than"):
        acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "commit": made})


def test_a_list_of_rows_that_takes_too_long_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readings count together, and the entry behind it is taken."""
    slow, quick = tmp_path / "slow.jsonl", tmp_path / "quick.jsonl"
    line = '{"repo": "a/b", "commit": "%s", "path": "%d.c", "content": "int x;"}\n'
    slow.write_text("".join(line % ("c" * 40, number) for number in range(15)))
    quick.write_text(line % ("c" * 40, 1))
    monkeypatch.setattr(tree_files.time, "monotonic", passing([0.0]))
    with pytest.raises(RepositoryError, match=r"^slow\.jsonl: it took more than 20 s in all") as failed:
        acquire(tmp_path / "out", {"files": str(slow)}, {"files": str(quick)}, timeout=5)
    assert "1 of 2 repositories are complete" in str(failed.value)
    assert len(records(tmp_path / "out")) == 1
