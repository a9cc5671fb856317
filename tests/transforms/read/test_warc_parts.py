"""Archives that many workers read: parts of any number give the records, origins and dead letters of one reader."""

import gzip
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from refinery.transforms.core.answers import Damaged
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.input_sums.file_read import FileRead, sums_of
from refinery.transforms.read.archives.warc_parts import STORED
from refinery.transforms.read.archives.warc_records import PartsDoNotMeet
from refinery.transforms.read.byte_source import ByteSource, MemberStream, open_source
from refinery.transforms.read.plan import SourceParams, plan_sources
from refinery.transforms.read.sources import LimitParams, ReadTask, read_file, read_task
from tests.sampling import sampled, scaled, seed
from tests.transforms.read_fixtures import COMPRESSORS, Outcome, arc_record, http, offset_of, task_for, warc_record

LIMITS = LimitParams(max_record_bytes=60_000, max_decompressed_bytes=90_000)
LARGE = LimitParams()
NOTES = warc_record(b"software: x", "warcinfo")
ROUNDS = scaled(200, 12)


def member(data: bytes, level: int = 6) -> bytes:
    return gzip.compress(data, level, mtime=0)


def random_page(rng: random.Random, number: int, size: int = 0) -> bytes:
    body = rng.randbytes(size or rng.choice([300, 3_000, 9_000, 30_000])).hex().encode()
    return warc_record(http(b"<p>" + body + b"</p>"), url=f"http://a.example/{number}")


def random_archive(rng: random.Random, pages: int, inner: float = 0.0) -> bytes:
    """An archive, compressed by record. inner: share of records that are archives themselves."""
    members = [member(NOTES)]
    for number in range(pages):
        if rng.random() < inner:
            archive = http(random_archive(rng, rng.randrange(1, 30)), ["Content-Type: application/warc"])
            members.append(member(warc_record(archive, url=f"http://a.example/{number}")))
        else:
            members.append(member(random_page(rng, number), rng.choice([1, 6, 9])))
    return b"".join(members)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The file with up to eight damages, and often another end."""
    for _ in range(rng.choice([0, 0, 1, 1, 3, 8])):
        at = rng.randrange(len(data))
        stop = min(len(data), at + rng.choice([1, 1, 50, 700, 5_000, 90_000]))
        noise = rng.randbytes(stop - at)
        data = data[:at] + rng.choice([b"", bytes(stop - at), noise, noise + data[at:stop]]) + data[stop:]
    end = rng.choice([b"", b"", rng.randbytes(rng.randrange(1, 3_000)), bytes(700), b"\x1f\x8b\x08"])
    return data[: rng.randrange(1, len(data)) if rng.random() < 0.2 else len(data)] + end


def parts_of(task: ReadTask, parts: int, limits: LimitParams) -> list[list[Outcome | FileRead]]:
    return [list(read_file(replace(task, part=part, parts=parts), limits)) for part in range(parts)]


def records(outcomes: Sequence[Outcome | FileRead]) -> list[Outcome]:
    return [one for one in outcomes if not isinstance(one, FileRead)]


def check_parts(task: ReadTask, parts: int, limits: LimitParams = LIMITS) -> int:
    """That parts give what one reader gives; returns how many of them have records."""
    whole = list(read_file(task, limits))
    found = parts_of(task, parts, limits)
    assert [one for part in found for one in records(part)] == records(whole)
    sums = sums_of([one for one in whole if isinstance(one, FileRead)], task.size)
    assert len(sums) == 1
    assert sums_of([one for part in found for one in part if isinstance(one, FileRead)], task.size) == sums
    return sum(bool(records(part)) for part in found)


@pytest.mark.parametrize("archives", sampled("archives that are read in parts", range(10), 1))
def test_parts_give_what_one_reader_gives(archives: int, tmp_path: Path) -> None:
    """Sound and damaged archives, with garbage behind them, joined from several, with archives in them."""
    rng, path = random.Random(f"{seed()} parts {archives}"), tmp_path / "crawl.warc.gz"
    used = cut = 0
    for _ in range(ROUNDS):
        inner = rng.choice([0.0, 0.05, 0.3])
        data = b"".join(random_archive(rng, rng.randrange(1, 90), inner) for _ in range(rng.choice([1, 1, 2])))
        path.write_bytes(damaged(rng, data))
        parts = rng.randrange(2, 25)
        used += check_parts(task_for(path, keep_truncated=rng.random() < 0.5), parts)
        cut += 1
    assert used > 2 * cut  # most files are large enough for several parts


def test_every_part_of_a_sound_archive_has_work(tmp_path: Path) -> None:
    path, rng = tmp_path / "crawl.warc.gz", random.Random(3)
    path.write_bytes(member(NOTES) + b"".join(member(random_page(rng, number, 4_000)) for number in range(300)))
    task = task_for(path, sample=0.7, seed=5)
    for parts in (2, 3, 7):
        assert check_parts(task, parts) == parts
        borders = [task.size * part // parts for part in range(parts + 1)]
        for part, found in enumerate(parts_of(task, parts, LIMITS)):  # a record is a part's if it begins in its range
            assert all(borders[part] <= offset_of(one) < borders[part + 1] for one in records(found))


@pytest.mark.parametrize("level", [0, 6, 9])
def test_an_archive_in_a_record_is_not_cut(tmp_path: Path, level: int) -> None:
    """It is stored as it is, and its members can be read there; however large it is."""
    rng, path = random.Random(level), tmp_path / "crawl.warc.gz"
    pages = [warc_record(http(rng.randbytes(size)), url=f"http://b.example/{size}") for size in [500, 40_000] * 20]
    stored = http(b"".join(map(member, pages)), ["Content-Type: application/warc"])
    data = member(NOTES) + member(warc_record(stored), level) + member(random_page(rng, 1, 300)) * 9
    path.write_bytes(data)
    places = [at for at in range(len(data)) if data.startswith(b"\x1f\x8b\x08", at)]
    with open_source(str(path)) as source:
        assert sum(MemberStream(source).probe(at).startswith(b"WARC/1.") for at in places) > 11 + 5
    assert len(records(list(read_file(task_for(path), LARGE)))) == 11
    for parts in (12, 40):
        assert 1 <= check_parts(task_for(path), parts, LARGE) <= 2


def made_to_deceive(rng: random.Random, size: int, length: str) -> bytes:
    """A record, compressed as deflate may do it, whose stored blocks fall so that an archive in it can be read from the
    file: the header of each block is a part of a page's text there."""
    block = 40_000
    border = b"\0" + struct.pack("<HH", block, block ^ 0xFFFF)
    seen, number = b"", 0
    while len(seen) < size:
        number += 1
        body = bytearray(random_page(rng, number, 7_000))
        place = (len(seen) // (block + 5) + 1) * (block + 5) - 5  # of the next border
        at = place - len(seen) - 15  # in the body of this member, whose own headers are 10 and 5 bytes
        if 300 < at < len(body) - 100:
            body[at : at + 5] = border
        elif -400 < at < len(body) + 100:  # it would fall between two pages: a longer one
            body = bytearray(random_page(rng, number, 12_000))
            if not 300 < at < len(body) - 100:
                body = bytearray(random_page(rng, number, 400))
            else:
                body[at : at + 5] = border
        head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\1" + struct.pack("<HH", len(body), len(body) ^ 0xFFFF)
        seen += head + body + struct.pack("<II", zlib.crc32(body), len(body))
    seen = seen[: len(seen) // (block + 5) * (block + 5)]
    payload = b"".join(seen[at : at + block] for at in range(0, len(seen), block + 5))
    record = warc_record(http(payload, ["Content-Type: application/warc"]), length=length)
    first, last = record[: record.index(payload)], b"\r\n\r\n"

    def stored(data: bytes, is_last: bool = False) -> bytes:
        return bytes([is_last]) + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data

    blocks = [payload[at : at + block] for at in range(0, len(payload), block)]
    deflated = stored(first) + b"".join(map(stored, blocks)) + stored(last, True)
    made = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflated + struct.pack("<II", zlib.crc32(record), len(record))
    assert gzip.decompress(made) == record
    return made


@pytest.mark.parametrize("length", ["", "700", "999999999", "x"])
def test_an_archive_that_is_made_to_look_like_a_part_is_an_error(tmp_path: Path, length: str) -> None:
    """Nothing tells its records from those of the file, except the member around them; also where its length lies."""
    rng, path = random.Random(1), tmp_path / "crawl.warc.gz"
    path.write_bytes(member(NOTES) + made_to_deceive(rng, 900_000, length) + member(random_page(rng, 1)))
    task = task_for(path)
    inner = [len(list(read_task(replace(task, part=part, parts=4), LARGE))) for part in range(1, 4)]
    assert min(inner) > 3  # the archive inside was read
    with pytest.raises(PartsDoNotMeet, match=r"crawl\.warc\.gz: a record goes on over byte \d+, where another"):
        list(read_task(replace(task, parts=4), LARGE))
    assert len(list(read_task(replace(task, cap=10**12), LARGE))) >= 3


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b"".join([NOTES, *[random_page(random.Random(1), n) for n in range(40)]])),
        b"".join(map(COMPRESSORS[".zst"], [NOTES, *[random_page(random.Random(1), n) for n in range(40)]])),
        b"".join([NOTES, *[random_page(random.Random(1), n) for n in range(40)]]),
        b"".join(gzip.compress(arc_record(http(b"x" * n), f"http://a.example/{n}")) for n in range(300, 400)),
        b"\0" + b"".join(gzip.compress(random_page(random.Random(1), n)) for n in range(40)),
        gzip.compress(NOTES.replace(b"Content-Length: 11", b"Content-Length: x"))
        + b"".join(gzip.compress(random_page(random.Random(1), n)) for n in range(40)),
        gzip.compress(NOTES.replace(b"Content-Length: 11", b"Content-Length: 123456789"))
        + gzip.compress(b"WARC/" * 999),
        b"",
    ],
    ids=["as a whole", "zstandard", "plain", "arc", "damaged start", "damaged first record", "two", "empty"],
)
def test_other_files_are_the_first_parts(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "crawl.warc.gz"
    path.write_bytes(data)
    assert len(plan_sources([SourceParams(name="s", paths=(str(path),))], split_bytes=1_000)) == 1
    found = parts_of(task_for(path), 3, LARGE)
    assert records(found[0]) == list(read_task(task_for(path), LARGE))
    assert not records(found[1]) and not records(found[2])


def test_the_planning_looks_at_first_records_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rng = tmp_path / "crawl.warc.gz", random.Random(2)
    path.write_bytes(member(NOTES) + b"".join(member(random_page(rng, number, 9_000)) for number in range(60)))
    read, view = 0, ByteSource._read

    def counted(self: ByteSource, start: int) -> bytes:
        nonlocal read
        data = view(self, start)
        read += len(data)
        return data

    monkeypatch.setattr(ByteSource, "_read", counted)
    source = SourceParams(name="s", paths=(str(path),))
    assert len(plan_sources([source], split_bytes=STORED)) == -(-path.stat().st_size // STORED)
    assert 0 < read <= 1 << 18 < path.stat().st_size
    assert len(plan_sources([source])) == len(plan_sources([source.model_copy(update={"cap": 5})], STORED)) == 1


def test_a_bomb_at_a_cut_is_passed_in_bounded_time(tmp_path: Path) -> None:
    """Members that inflate to much, of which none leads to sound records: the range has no cut."""
    path, rng = tmp_path / "crawl.warc.gz", random.Random(4)
    bomb = member(warc_record(http(b"\0" * 4_000_000)), 9)[:-8] + b"12345678"
    path.write_bytes(member(NOTES) + b"".join(member(random_page(rng, n)) for n in range(9)) + bomb * 20)
    whole = list(read_task(task_for(path), LIMITS))
    assert sum(isinstance(one, Damaged) for one in whole) == 20
    assert sum(isinstance(one, RawDocument) for one in whole) > 3
    check_parts(task_for(path), 3)
