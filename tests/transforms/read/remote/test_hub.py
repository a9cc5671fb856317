"""Data sets of a hub: what an address means, what is pinned, what is sent where, and what failures cost."""

import hashlib
import io
import json
import socket
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.store import StorageError
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.remote.hub import list_hub, parse_address
from refinery.transforms.read.sources import SourceParams, plan_sources, read_task
from tests.fake_hub import FakeHub, commit
from tests.lying_server import Answer, Request
from tests.sampling import one_commit_in_four

CARD = b"""---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*/*
- config_name: small
  default: true
  data_files:
  - split: train
    path: ["small/train-*.parquet"]
  - split: test
    path: small/test-0.parquet
- config_name: folder
  data_dir: other
  data_files: "*.jsonl"
---
# A data set
"""


def table(number: int, rows: int = 20) -> bytes:
    out = io.BytesIO()
    texts = [f"text {row} of file {number}, " * 9 for row in range(rows)]
    pq.write_table(pa.table({"text": texts, "url": [f"https://a.example/{number}/{r}" for r in range(rows)]}), out,
                   row_group_size=5)  # fmt: skip
    return out.getvalue()


def lines(*texts: str) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


FILES = {
    "README.md": CARD,
    ".gitattributes": b"x",
    "data/2024/0.jsonl": lines("one"),
    "data/2025/0.jsonl": lines("two"),
    "small/train-0.parquet": table(0),
    "small/train-1.parquet": table(1),
    "small/test-0.parquet": table(2),
    "other/a.jsonl": lines("three"),
    "other/deep/b.jsonl.gz": gzip(lines("four")),
}


@pytest.fixture(autouse=True)
def data_set(hub: FakeHub) -> None:
    hub.put("org/set", commit(1), FILES)


def names(address: str, config: str = "", split: str = "train") -> list[str]:
    return [path.partition("@")[2].partition("/")[2] for path, _, _ in list_hub(address, config, split)]


@pytest.mark.parametrize(
    ("address", "config", "split", "found"),
    [
        ("", "", "train", ["small/train-0.parquet", "small/train-1.parquet"]),
        ("@main", "small", "t*", ["small/test-0.parquet", "small/train-0.parquet", "small/train-1.parquet"]),
        ("", "default", "train", ["data/2024/0.jsonl", "data/2025/0.jsonl"]),
        ("", "folder", "train", ["other/a.jsonl"]),
        ("/small/*-0.parquet", "", "train", ["small/test-0.parquet", "small/train-0.parquet"]),
        ("/other", "", "train", ["other/a.jsonl", "other/deep/b.jsonl.gz"]),
        ("/other/**", "", "train", ["other/a.jsonl", "other/deep/b.jsonl.gz"]),
        ("@main/other/a.jsonl", "", "train", ["other/a.jsonl"]),
        ("/nothing/*", "", "train", []),
    ],
)
def test_what_an_address_means(address: str, config: str, split: str, found: list[str]) -> None:
    assert names(f"hf://datasets/org/set{address}", config, split) == found


@pytest.mark.parametrize(
    ("files", "split", "found"),
    [
        ({"train.jsonl": b"x", "test.jsonl": b"x"}, "train", ["train.jsonl"]),
        ({"train.jsonl": b"x", "test.jsonl": b"x"}, "*", ["test.jsonl", "train.jsonl"]),
        ({"en/train-00001.parquet": b"x", "en/constraints.parquet": b"x"}, "train", ["en/train-00001.parquet"]),
        ({"a.jsonl": b"x", "notes.md": b"x", "b.json.gz": b"x"}, "train", ["a.jsonl", "b.json.gz"]),
    ],
)
def test_a_card_without_files_leaves_names(hub: FakeHub, files: dict[str, bytes], split: str, found: list[str]) -> None:
    hub.put("org/bare", commit(2), files | {"README.md": b"no front matter"})
    assert names("hf://datasets/org/bare", "", split) == found
    with pytest.raises(ValueError, match=r"names no configurations; give the files, .*@refs/convert/parquet/en/"):
        names("hf://datasets/org/bare", "en")


def test_a_branch_is_pinned_and_a_commit_stays(hub: FakeHub) -> None:
    before = list_hub("hf://datasets/org/set@main/other/a.jsonl")
    assert before[0][0] == f"hf://datasets/org/set@{commit(1)}/other/a.jsonl"
    hub.put("org/set", commit(3), {"other/a.jsonl": lines("changed")})
    assert list_hub("hf://datasets/org/set@main/other/a.jsonl")[0][0].split("/")[4] == f"set@{commit(3)}"
    assert list_hub(f"hf://datasets/org/set@{commit(1)}/other/a.jsonl") == before
    hub.put("org/set", commit(4), {"small/train/0.parquet": table(0)}, branch="refs/convert/parquet")
    converted = list_hub("hf://datasets/org/set@refs/convert/parquet/small/train/*.parquet")
    assert [path for path, _, _ in converted] == [f"hf://datasets/org/set@{commit(4)}/small/train/0.parquet"]


@pytest.mark.parametrize("text", ["hf://org/set", "hf://datasets/set", "hf://models/a/b", "hf://datasets/a/b c"])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hf://datasets/ORGANISATION/NAME"):
        parse_address(text)


def test_mistakes_say_what_to_do(hub: FakeHub) -> None:
    for address, config, split, message in [
        ("org/none", "", "train", "no data set org/none exists, or it is private; check the name, or set HF_TOKEN"),
        ("org/set@v9", "", "train", "org/set has no such revision"),
        ("org/set", "large", "train", "config: 'large' given, org/set has default, small, folder"),
        (
            "org/set/other/",
            "small",
            "train",
            "config: 'small' given beside a path in the data set",
        ),
        ("org/set", "small", "dev", "split: 'dev' given, org/set has test, train"),
    ]:
        with pytest.raises(ValueError, match=message):
            list_hub(f"hf://datasets/{address}", config, split)
        with pytest.raises(ValueError, match=r"source a: paths: .* cannot be listed") as caught:
            plan_sources([SourceParams(name="a", paths=(f"hf://datasets/{address}",), config=config, split=split)])
        assert "\n" not in str(caught.value)
    hub.token = "hf_given"  # noqa: S105
    with pytest.raises(ValueError, match="is gated; ask for access on its page, then set HF_TOKEN"):
        list_hub("hf://datasets/org/set")


ENTRY = {"type": "file", "oid": "a" * 40, "size": 5, "path": "x.jsonl"}
ENTRIES: dict[str, tuple[object, str]] = {
    "a path up": ({**ENTRY, "path": "../x.jsonl"}, "name: '../x.jsonl' given"),
    "an absolute path": ({**ENTRY, "path": "/x.jsonl"}, "name: '/x.jsonl' given"),
    "a NUL": ({**ENTRY, "path": "a\0.jsonl"}, "a relative path without"),
    "a line break": ({**ENTRY, "path": "a\n.jsonl"}, "printable names are allowed"),
    "a path of no letters": ({**ENTRY, "path": 17}, "gives an answer that cannot be read"),
    "no size": ({"type": "file", "oid": "a" * 40, "path": "x.jsonl"}, "gives an answer that cannot be read: 'size'"),
    "a size of words": ({**ENTRY, "size": "many"}, "says that it has 'many' bytes"),
    "a size below nothing": ({**ENTRY, "size": -5}, "says that it has -5 bytes"),
    "a size beyond all": ({**ENTRY, "size": 1 << 70}, "says that it has 1180591620717411303424 bytes"),
    "no entry": (17, "gives an answer that cannot be read"),
    "too many": ({**ENTRY, "path": "y.jsonl"}, "more than 3 names are listed; name a folder with fewer"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_hostile_listings_are_one_line(hub: FakeHub, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.transforms.read.remote.globs.MOST_LISTED", 3)
    entry, message = ENTRIES[what]
    act = hub.hub.act

    def lie(request: Request) -> Answer:
        if "/tree/" in request.path:
            return (
                200,
                {"Content-Type": "application/json"},
                json.dumps([entry] * (9 if what == "too many" else 1)).encode(),
            )
        return act(request)

    hub.hub.act = lie
    with pytest.raises(ValueError, match=message) as caught:
        plan_sources([SourceParams(name="a", paths=("hf://datasets/org/set/*.jsonl",))])
    assert str(caught.value).startswith("source a: paths: ") and "\n" not in str(caught.value)


def test_a_hub_that_gives_no_answer_is_given_up_soon(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.transforms.read.remote.hub.REACHING", FetchParams(deadline=0.5, hedge_after=0))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("HF_ENDPOINT", url)
    with pytest.raises(StorageError, match=f"org/set: {url} cannot be asked: ConnectError: ") as caught:
        list_hub("hf://datasets/org/set")
    assert "\n" not in str(caught.value)


def test_a_token_goes_to_the_hub_alone_and_into_no_task(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = "hf_given"  # noqa: S105
    monkeypatch.setenv("HF_TOKEN", "hf_given")
    tasks = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/set",))])
    assert len([record for task in tasks for record in read_task(task)]) == 40
    assert not any("hf_given" in task.to_json().decode() for task in tasks)
    assert hub.store.requests
    assert hub.store.headers_seen
    assert not any("authorization" in headers for headers in hub.store.headers_seen)


def test_every_record_of_every_format_is_read(hub: FakeHub) -> None:
    paths = ("hf://datasets/org/set/other/", "hf://datasets/org/set")
    tasks = plan_sources([SourceParams(name="a", paths=paths)], split_bytes=400)
    records = [record for task in tasks for record in read_task(task)]
    assert all(isinstance(record, RawDocument) for record in records)
    assert len(records) == 42
    assert len({record.origin for record in records}) == 42
    assert all(f"@{commit(1)}/" in record.origin for record in records)
    assert {task.version.partition(":")[0] for task in tasks} == {"sha256", "git"}
    assert max(task.parts for task in tasks) > 3  # more than its row groups have work for


def test_expired_addresses_are_asked_for_again(hub: FakeHub) -> None:
    """A large file's address is signed and expires: the next range gets a new one, and no token on the way."""
    hub.put("org/big", commit(5), {"a.parquet": table(9, rows=400)})
    (task,) = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/big",))])
    assert len(list(read_task(task))) == 400
    asked = len([r for r in hub.hub.requests if "/resolve/" in r.path and r.path.endswith(".parquet")])
    assert asked == 1  # the target of a redirect is remembered
    hub.store.script.append("403")
    assert len(list(read_task(task))) == 400


@pytest.mark.parametrize("fault", ["500", "503", "429", "reset", "reset in body", "short", "content-range", "length"])
def test_faults_on_the_way_change_nothing(hub: FakeHub, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.loader.storage.fetch.random.uniform", lambda low, high: 0.0)
    tasks = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/set",))])
    whole = [record for task in tasks for record in read_task(task)]
    hub.store.script.extend([fault, "", fault])
    hub.faults.extend([503, 429])
    again = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/set",))])
    assert again == tasks
    assert [record for task in again for record in read_task(task)] == whole


def test_a_wrong_checksum_fails_the_bundle_and_is_no_dead_letter(hub: FakeHub) -> None:
    hub.put("org/bad", commit(6), {"a.jsonl.gz": gzip(lines(*"abc"))})
    hub.wrong.add("a.jsonl.gz")
    (task,) = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/bad",))])
    with pytest.raises(StorageError, match=r"sha256 \w+ found, \w+ expected"):
        list(read_task(task))


def test_a_storage_that_fails_is_no_damaged_parquet_file(hub: FakeHub) -> None:
    """Else an outage would write off row groups as dead letters."""
    (task, _) = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/set",))])
    hub.store.files[f"org/set/{commit(1)}/small/train-0.parquet"] = b"another file"
    with pytest.raises(OSError, match=r"changed|expected"):
        list(read_task(task))


@one_commit_in_four
def test_a_file_crosses_the_network_once(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet in parts and by columns, compressed lines by one reader: nothing is fetched for each of them again."""
    monkeypatch.setattr("refinery.transforms.read.remote.web.BUFFER", 1 << 14)
    packed = gzip(
        b"".join(hashlib.sha512(b"%d" % n).hexdigest().encode().join([b'{"text": "', b'"}\n']) for n in range(4000))
    )
    out = io.BytesIO()
    texts = [hashlib.sha512(b"%d" % n).hexdigest() * 4 for n in range(2000)]
    columns = {"text": texts, "unused": texts[::-1], "url": texts, "date": texts}
    pq.write_table(pa.table(columns), out, row_group_size=100, compression=None, use_dictionary=False)
    hub.put("org/large", commit(7), {"a.parquet": out.getvalue(), "b.jsonl.gz": packed})
    tasks = plan_sources([SourceParams(name="a", paths=("hf://datasets/org/large",))], split_bytes=1_000_000)
    assert [task.parts for task in tasks if task.format == "jsonl"] == [1]
    assert len([task for task in tasks if task.format == "parquet"]) == 5
    assert len([record for task in tasks for record in read_task(task)]) == 6000
    for name, data in (("a.parquet", out.getvalue()), ("b.jsonl.gz", packed)):
        asked = sum(min(stop, len(data)) - start for path, start, stop in hub.store.requests if path.endswith(name))
        assert asked < 1.3 * len(data)
