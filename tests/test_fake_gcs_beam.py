"""Beam as a client of the fake Cloud Storage."""

import gc
import warnings
from base64 import b64encode
from collections.abc import Iterator

import apache_beam as beam
import google_crc32c
import pytest
from apache_beam.io.filesystems import FileSystems

from tests.beam import run_and_collect
from tests.fake_gcs import Call, FakeGcs, Fault, fake_gcs


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    """Beam never closes its clients."""
    with warnings.catch_warnings(), fake_gcs("bucket", "other") as server:
        warnings.simplefilter("ignore", ResourceWarning)
        server.use(monkeypatch)
        yield server
        gc.collect()


def test_beam_reads_writes_lists_renames_and_deletes(server: FakeGcs) -> None:
    server.api.page_size = 2
    for number in range(5):
        with FileSystems.create(f"gs://bucket/in/{number}.txt") as stream:
            stream.write(b"one\ntwo\n" * number)
    (found,) = FileSystems.match(["gs://bucket/in/*.txt"])
    assert [entry.size_in_bytes for entry in found.metadata_list] == [0, 8, 16, 24, 32]
    crc32c = google_crc32c.value(b"one\ntwo\n").to_bytes(4, "big")
    assert FileSystems.checksum("gs://bucket/in/1.txt") == b64encode(crc32c).decode()
    with FileSystems.open("gs://bucket/in/2.txt") as stream:
        stream.seek(4)
        assert stream.read(3) == b"two"
    FileSystems.rename(["gs://bucket/in/0.txt"], ["gs://other/0.txt"])
    FileSystems.delete(["gs://bucket/in/1.txt"])
    assert sorted(server.read("bucket", "in/")) == ["2.txt", "3.txt", "4.txt"] and server.read("other") == {
        "0.txt": b""
    }
    assert FileSystems.exists("gs://other/0.txt") and not FileSystems.exists("gs://other/1.txt")
    (lines,) = run_and_collect(lambda p: [p | beam.io.ReadFromText("gs://bucket/in/*")])
    assert sorted(lines) == ["one"] * 9 + ["two"] * 9
    run_and_collect(lambda p: [p | beam.Create(["a", "b"]) | beam.io.WriteToText("gs://other/out", num_shards=1)])
    assert sorted(server.read("other", "out")["-00000-of-00001"].split()) == [b"a", b"b"]


def test_beams_own_retries(server: FakeGcs) -> None:
    server.put("bucket", "x", b"data")
    todo = {"list": 1, "stat": 1, "download": 1}

    def once(call: Call) -> Fault | None:
        todo[call.kind] = todo.get(call.kind, 0) - 1
        return Fault("status", 503) if todo[call.kind] == 0 else None

    server.on_call = once
    assert FileSystems.match(["gs://bucket/*"])[0].metadata_list[0].path == "gs://bucket/x"
    with FileSystems.open("gs://bucket/x") as stream:
        assert stream.read() == b"data"
    assert [call.kind for call in server.calls] == ["list", "list", "stat", "stat", "download", "download"]
