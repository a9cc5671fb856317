"""Files of web servers as inputs: versions, lists of addresses, what cannot be listed."""

import gzip
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from refinery.transforms.read.remote import web
from refinery.transforms.read.remote.files import Found, choose_files
from refinery.transforms.read.sources import SourceParams, plan_sources, read_task
from tests.loader.range_server import RangeServer, range_server
from tests.transforms.read_fixtures import page

LINES = b'{"text": "a line"}\n' * 50


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with range_server() as running:
        running.files |= {f"crawl/{number}.jsonl": LINES * (number + 1) for number in range(4)}
        running.files["crawl/a b+c.jsonl"] = LINES
        listing = "".join(f"crawl/{number}.jsonl\n" for number in range(4))
        running.files["lists/x.paths.gz"] = gzip.compress(f"# a note\n{listing}\n".encode(), mtime=0)
        running.files["lists/urls.txt"] = f"{running.url}/crawl/1.jsonl\r\n{running.url}/crawl/2.jsonl".encode()
        yield running


def source(**fields: object) -> SourceParams:
    return SourceParams(name="a", **fields)  # type: ignore[arg-type]


def test_a_file_has_its_size_and_etag_and_is_read(server: RangeServer) -> None:
    (task,) = plan_sources([source(paths=(f"{server.url}/crawl/2.jsonl",))])
    assert (task.size, task.version[:6]) == (3 * len(LINES), 'etag:"')
    assert len(list(read_task(task))) == 150
    (spaced,) = plan_sources([source(paths=(f"{server.url}/crawl/a%20b+c.jsonl",))])
    assert len(list(read_task(spaced))) == 50


@pytest.mark.parametrize(("name", "numbers"), [("x.paths.gz", range(4)), ("urls.txt", (1, 2))])
def test_a_list_names_files(server: RangeServer, name: str, numbers: list[int], tmp_path: Path) -> None:
    tasks = plan_sources([source(path_lists=(f"{server.url}/lists/{name}",))])
    assert [task.path for task in tasks] == [f"{server.url}/crawl/{number}.jsonl" for number in numbers]
    local = tmp_path / name
    local.write_bytes(server.files[f"lists/{name}"])
    if name == "urls.txt":
        assert plan_sources([source(path_lists=(str(local),))]) == tasks
    else:
        (tmp_path / "crawl").mkdir()
        for number in range(4):
            (tmp_path / f"crawl/{number}.jsonl").write_bytes(LINES)
        assert [Path(task.path).name for task in plan_sources([source(path_lists=(str(local),))])] == [
            f"{number}.jsonl" for number in range(4)
        ]


def test_max_files_asks_for_no_others(server: RangeServer) -> None:
    lists = (f"{server.url}/lists/x.paths.gz",)
    chosen = {
        seed: [t.path for t in plan_sources([source(path_lists=lists, max_files=2, seed=seed)])] for seed in range(8)
    }
    assert all(len(paths) == 2 for paths in chosen.values())
    assert len({tuple(paths) for paths in chosen.values()}) > 1
    server.requests.clear()
    again = plan_sources([source(path_lists=lists, max_files=2)])
    assert [task.path for task in again] == chosen[0]
    assert len({name for name, _, _ in server.requests if name.startswith("crawl/")}) == 2
    more = plan_sources([source(path_lists=lists, max_files=3)])
    assert {task.path for task in more} >= set(chosen[0])


def test_the_choice_of_files_does_not_depend_on_their_order() -> None:
    files = [Found(f"f{number}") for number in range(30)]
    assert choose_files(files, 7, 1) == choose_files(files[::-1], 7, 1)
    assert choose_files(files, 99, 1) == sorted(files, key=lambda file: file.path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/crawl/*.jsonl", "web servers cannot be listed; name every file, or a list of files in `path_lists`"),
        ("/crawl/", "https://host/path/to/file without query is allowed"),
        ("/crawl/1.jsonl#x", "without query is allowed"),
        ("/none.jsonl", "none.jsonl is not there"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(server: RangeServer, path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        plan_sources([source(paths=(server.url + path,))])
    assert "\n" not in str(caught.value)


def test_a_signed_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="without query is allowed") as caught:
        web.split_address("https://host.example/a.jsonl?Signature=secret")
    assert "secret" not in str(caught.value)
    for address in ("https://host.example/a.jsonl?Signature=secret", "https://user:secret@host.example/a.jsonl"):
        with pytest.raises(ValueError, match=r"cannot be listed|location: ") as caught:
            plan_sources([source(paths=(address,))])
        assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="https:// is allowed, http:// for loopback"):
        web.describe("http://host.example/a.jsonl")


def test_a_local_list_says_which_line_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").write_bytes(LINES)
    for name in ("1.jsonl", "a\0b.jsonl"):
        (tmp_path / "list.txt").write_text(f"0.jsonl\n{name}\n")
        with pytest.raises(ValueError, match=r"line 2: '.*jsonl' is not there"):
            plan_sources([source(path_lists=(str(tmp_path / "list.txt"),))])


def test_a_list_with_other_lines_is_refused(server: RangeServer) -> None:
    server.files["lists/bad.txt"] = b"ftp://x/y"
    with pytest.raises(ValueError, match="line 1: 'ftp://x/y' given"):
        plan_sources([source(path_lists=(f"{server.url}/lists/bad.txt",))])
    server.files["lists/cut.gz"] = server.files["lists/x.paths.gz"][:-9]
    with pytest.raises(ValueError, match=r"the list is damaged \(Truncated\)"):
        plan_sources([source(path_lists=(f"{server.url}/lists/cut.gz",))])


def test_a_file_that_has_changed_is_refused(server: RangeServer) -> None:
    (task,) = plan_sources([source(paths=(f"{server.url}/crawl/2.jsonl",))])
    server.files["crawl/2.jsonl"] = server.files["crawl/2.jsonl"].replace(b"line", b"lion")
    with pytest.raises(OSError, match="the object has changed"):
        list(read_task(task))


@pytest.mark.parametrize("fault", ["503", "reset in body", "short", "wrong"])
def test_a_gzip_file_survives_faults_or_says_what_is_damaged(
    server: RangeServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web server's bytes have no checksum but their own: what a wrong one costs is a counted dead letter."""
    monkeypatch.setattr("refinery.loader.storage.fetch.random.uniform", lambda low, high: 0.0)
    server.files["a.jsonl.gz"] = gzip.compress(LINES, mtime=0)
    (task,) = plan_sources([source(paths=(f"{server.url}/a.jsonl.gz",))])
    server.script.append(fault)
    records = list(read_task(task))
    assert len(records) == 50 or fault == "wrong"
    if fault == "wrong":
        assert records[-1].error == "BadGzip"  # type: ignore[union-attr]


def test_a_server_without_etags_is_known_by_both_ends(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.etags = False
    (task,) = plan_sources([source(paths=(f"{server.url}/crawl/2.jsonl",))])
    assert task.version.startswith("ends:")
    assert len(list(read_task(task))) == 150
    server.files["crawl/2.jsonl"] = server.files["crawl/2.jsonl"].replace(b"line", b"lion")
    (other,) = plan_sources([source(paths=(f"{server.url}/crawl/2.jsonl",))])
    assert other.version != task.version
    server.files["crawl/2.jsonl"] += b"\n"
    with pytest.raises(OSError, match="bytes found"):
        list(read_task(task))


def test_a_server_that_ignores_ranges_is_refused(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "PLANNING", replace(web.PLANNING, deadline=0.3))
    server.scripts["crawl/2.jsonl"] = deque(["200"] * 99)
    with pytest.raises(ValueError, match="the server ignores Range"):
        plan_sources([source(paths=(f"{server.url}/crawl/2.jsonl",))])


def test_an_archive_is_read_in_parts(server: RangeServer) -> None:
    rng = random.Random(1)
    pages = [page(number, rng.randbytes(4_000).hex().encode()) for number in range(120)]
    address = f"{server.url}/crawl/a.warc.gz"
    server.files["crawl/a.warc.gz"] = data = b"".join(map(gzip.compress, pages))
    (whole,) = plan_sources([source(paths=(address,))], split_bytes=len(data) // 4 + 1)  # four times as much of a part
    parts = plan_sources([source(paths=(address,))], split_bytes=len(data) // 16 + 1)
    assert len(parts) == 4
    found = [list(read_task(part)) for part in parts]
    assert [record for part in found for record in part] == list(read_task(whole))
    assert all(len(part) > 9 for part in found)
