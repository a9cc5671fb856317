"""`refinery acquire`: what a crawl's server and a killed command can do, and what is on disk afterwards."""

import gzip
import hashlib
import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.loader.storage.store import StorageError
from refinery.pipelines.acquire import commoncrawl as module
from refinery.pipelines.acquire.commoncrawl import LEDGER
from refinery.pipelines.cli.acquire_commoncrawl import COMMAND, acquire
from refinery.transforms.read.sources import SourceParams, plan_sources, read_task
from tests.loader.range_server import RangeServer, range_server
from tests.transforms.read_fixtures import page

NAMES = [f"crawl-data/CC-MAIN-2024-10/segments/{n}/warc/CC-MAIN-{n}.warc.gz" for n in range(6)]


def archive(number: int) -> bytes:
    return b"".join(gzip.compress(page(number * 100 + at), mtime=0) for at in range(30))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.loader.storage.fetch.random.uniform", lambda low, high: 0.0)
    monkeypatch.setattr(module, "PIECE", 700)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with range_server() as running:
        running.files |= {name: archive(number) for number, name in enumerate(NAMES)}
        listing = "".join(f"{name}\n" for name in NAMES).encode()
        running.files["crawl-data/CC-MAIN-2024-10/warc.paths.gz"] = gzip.compress(listing, mtime=0)
        yield running


def arguments(server: RangeServer, folder: Path, *more: str) -> Namespace:
    parser = ArgumentParser()
    COMMAND.arguments(parser)
    given = ["--snapshot", "CC-MAIN-2024-10", "--files", "2", "--output", str(folder), "--server", server.url, *more]
    return parser.parse_args(given)


def fetch(server: RangeServer, folder: Path, *more: str) -> list[str]:
    said: list[str] = []
    said += acquire(arguments(server, folder, *more), said.append)
    return said


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.warc.gz*")}


def test_files_are_whole_noted_and_read_by_a_recipe(server: RangeServer, tmp_path: Path) -> None:
    said = fetch(server, tmp_path)
    found = files(tmp_path)
    assert len(found) == 2
    assert all(server.files[name] == data for name, data in found.items())
    notes = [json.loads(line) for line in (tmp_path / LEDGER).read_text().splitlines()]
    assert {note["path"]: note["sha256"] for note in notes} == {
        name: hashlib.sha256(data).hexdigest() for name, data in found.items()
    }
    listing = re.search(r"path_lists: \[(.*?)\]", said[-1])
    assert listing
    tasks = plan_sources([SourceParams(name="a", paths=(), path_lists=(listing[1],))])
    assert len([record for task in tasks for record in read_task(task)]) == 60
    remote = f"{server.url}/crawl-data/CC-MAIN-2024-10/warc.paths.gz"
    same = plan_sources([SourceParams(name="a", path_lists=(remote,), max_files=2)])
    assert [task.path.removeprefix(f"{server.url}/") for task in same] == sorted(found)


def test_nothing_is_fetched_twice(server: RangeServer, tmp_path: Path) -> None:
    fetch(server, tmp_path)
    server.requests.clear()
    assert [line.endswith("is there") for line in fetch(server, tmp_path)] == [True, True, False, False]
    assert [name for name, _, _ in server.requests] == ["crawl-data/CC-MAIN-2024-10/warc.paths.gz"]
    before = files(tmp_path)
    fetch(server, tmp_path, "--files", "4")
    assert before.items() <= files(tmp_path).items()
    assert len(files(tmp_path)) == 4


@pytest.mark.parametrize("stop_after", [1, 3, 7])
def test_an_interrupted_download_goes_on_where_it_stopped(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    calls = iter(range(stop_after))

    def interrupt(seconds: float) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module.time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch(server, tmp_path)
    done = {name: len(data) for name, data in files(tmp_path).items() if name.endswith(".part")}
    assert done
    server.requests.clear()
    fetch(server, tmp_path)
    (part,) = done
    starts = [start for name, start, stop in server.requests if part.startswith(name) and stop > 1]
    assert starts[0] == done[part] == (stop_after + 1) * 700
    assert all(server.files[name] == data for name, data in files(tmp_path).items())


def test_a_part_of_another_version_is_not_continued(server: RangeServer, tmp_path: Path) -> None:
    fetch(server, tmp_path)
    name = next(iter(files(tmp_path)))
    whole = tmp_path / name
    whole.rename(f"{whole}.part")
    Path(f"{whole}.part.etag").write_text('"another"')
    (tmp_path / LEDGER).unlink()
    fetch(server, tmp_path)
    assert files(tmp_path)[name] == server.files[name]


LISTS: dict[str, tuple[bytes, str]] = {
    "a path up": (
        b"crawl-data/../../x.warc.gz\n",
        "it lists 'crawl-data/../../x.warc.gz', which is not a file of a crawl",
    ),
    "an absolute path": (b"/etc/x.gz\n", "it lists '/etc/x.gz'"),
    "a NUL": (b"crawl-data/a\0b.gz\n", r"it lists 'crawl-data/a\\x00b.gz'"),
    "our own records": (b"acquired.jsonl\n", "it lists 'acquired.jsonl'"),
    "an address": (b"https://other.example/x.gz\n", "it lists 'https://other.example/x.gz'"),
    "a page": (b"<html><body>Not here</body></html>", "it lists '<html><body>Not'"),
    "terminal codes": (b"crawl-data/\x1b[2J.gz", r"it lists 'crawl-data/\\x1b\[2J.gz'"),
    "letters of no use": (b"\xff\xfe", "not a gzip file of names"),
    "a bomb": (bytes(3000), "the list of files has more than 2,000 bytes"),
}


@pytest.mark.parametrize("what", LISTS)
def test_hostile_lists_are_refused_before_anything_is_fetched(
    server: RangeServer, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refinery.transforms.read.find_files.MAX_LIST_BYTES", 2000)
    data, message = LISTS[what]
    lines = data if what in ("a bomb", "a page") else f"{NAMES[0]}\n".encode() + data
    server.files["crawl-data/CC-MAIN-2024-10/warc.paths.gz"] = gzip.compress(lines, mtime=0)
    with pytest.raises(StorageError, match=message) as caught:
        fetch(server, tmp_path)
    assert str(caught.value).isprintable()
    assert {path.name for path in tmp_path.rglob("*")} == {".acquire.lock"}


def test_a_list_that_is_no_gzip_or_is_cut(server: RangeServer, tmp_path: Path) -> None:
    listing = "crawl-data/CC-MAIN-2024-10/warc.paths.gz"
    for data in (b"crawl-data/x.gz\n", server.files[listing][:-9], b"\x1f\x8b\x08\0\0\0\0\0\0\3\xff\xff"):
        server.files[listing] = data
        with pytest.raises(StorageError, match="not a gzip file of names"):
            fetch(server, tmp_path)


@pytest.mark.parametrize("fault", ["503", "429", "reset in body", "short", "content-range", "etag"])
def test_faults_cost_time_alone(server: RangeServer, tmp_path: Path, fault: str) -> None:
    server.script.extend(["", "", fault, "", fault])
    try:
        fetch(server, tmp_path)
    except OSError as error:  # the file changed under the download: the next command begins it anew
        assert fault == "etag"
        assert "changed" in str(error)
        server.script.clear()
        fetch(server, tmp_path)
    assert all(server.files[name] == data for name, data in files(tmp_path).items())


def test_wrong_bytes_are_fetched_again_once(server: RangeServer, tmp_path: Path) -> None:
    server.script.extend(["", "", "", "wrong"])
    said = fetch(server, tmp_path)
    assert sum("md5" in line and "trying again" in line for line in said) == 1
    assert all(server.files[name] == data for name, data in files(tmp_path).items())


def test_wrong_bytes_twice_are_an_error_and_no_file(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server names no MD5, the members' own checksums decide."""
    for name in NAMES:
        server.files[name] = server.files[name][:400] + b"????" + server.files[name][404:]
    with pytest.raises(StorageError, match=r"a checksum inside it is wrong \(\w+\), twice; try again later"):
        fetch(server, tmp_path)
    assert not files(tmp_path)
    assert not (tmp_path / LEDGER).exists()


def test_check_reads_again_and_mends(server: RangeServer, tmp_path: Path) -> None:
    fetch(server, tmp_path)
    name, data = next(iter(files(tmp_path).items()))
    (tmp_path / name).write_bytes(data[:-1] + b"?")
    fetch(server, tmp_path)
    assert files(tmp_path)[name] != data  # its size is right; only --check reads it
    fetch(server, tmp_path, "--check")
    assert files(tmp_path)[name] == data


def test_a_file_without_a_note_is_checked_and_kept(server: RangeServer, tmp_path: Path) -> None:
    """The command was killed between the file's name and its note, in the middle of a line of which."""
    fetch(server, tmp_path)
    text = (tmp_path / LEDGER).read_text()
    (tmp_path / LEDGER).write_text(text[: len(text) - 20])
    server.requests.clear()
    fetch(server, tmp_path)
    assert len(server.requests) == 2  # the list, and the size of one file
    notes = [line for line in (tmp_path / LEDGER).read_text().splitlines() if line.endswith("}")]
    assert len({json.loads(note)["path"] for note in notes}) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--files", "0"), "--files: 0 given, 1 or more is allowed"),
        (("--rate", "0"), "--rate: 0 given, a number above 0"),
        (("--snapshot", "2024-10"), "--snapshot: '2024-10' given, CC-MAIN-YEAR-WEEK"),
        (("--snapshot", "CC-MAIN-2099-01"), "is not there: no such crawl"),
        (("--output", "s3://bucket/x"), "a local folder is allowed; recipes read s3:// and https://"),
    ],
)
def test_what_cannot_work_is_refused(server: RangeServer, tmp_path: Path, more: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fetch(server, tmp_path, *more)


def test_the_rate_is_kept(server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(module.time, "sleep", waits.append)
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)  # requests take no time
    fetch(server, tmp_path, "--rate", "0.001")
    assert sum(waits) == pytest.approx(sum(map(len, files(tmp_path).values())) / 1000)


def test_a_full_disk_is_said_before_anything_is_written(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: Namespace(free=10))
    with pytest.raises(OSError, match=r"GB are needed for .*, 0.00 are free"):
        fetch(server, tmp_path)


def test_two_commands_do_not_share_a_folder(server: RangeServer, tmp_path: Path) -> None:
    running = acquire(arguments(server, tmp_path), lambda line: list(acquire(arguments(server, tmp_path), print)))
    fetch(server, tmp_path)
    with pytest.raises(ValueError, match="another command is at work in"):
        list(running)
