"""Archives cut, flipped, overwritten or stuffed at random: what was not touched is read under its own address."""

import random
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import LimitParams
from tests.sampling import scaled, seed
from tests.transforms.read_fixtures import COMPRESSORS, arc_record, http, read, warc_record

LIMITS = LimitParams(max_record_bytes=20_000, max_decompressed_bytes=30_000)
LETTERS = bytes(range(97, 123)) + b"     \n"
ROUNDS = scaled(100_000, 600)  # in all forms together

Outcomes = Sequence[RawDocument | Skipped | Damaged]


def address(number: int) -> str:
    return f"http://host-{number}.example/{number}"


def random_record(rng: random.Random, number: int, is_arc: bool) -> bytes:
    """A page of its own, with blank lines in it, and now and then one above the limit."""
    size = 40_000 if rng.random() < 0.05 else rng.randrange(20, 3_000)
    text = b"<p>%d " % number + bytes(rng.choices(LETTERS, k=size)) + b"\r\n\r\n</p>"
    if is_arc:
        return arc_record(http(text), address(number))
    extra = [f"WARC-Record-ID: <urn:uuid:{number}>", "WARC-Date: 2024-05-01T00:00:00Z"][: rng.randrange(3)]
    return warc_record(http(text), url=address(number), extra=extra)


def damage(rng: random.Random, data: bytes) -> tuple[bytes, int, int]:
    """The file with one damage, and the first and the last byte of it (behind the last: the same) in the sound file."""
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice([1, 1, 3, 50, 700, 5_000]))
    kind = rng.choice(["cut", "cut", "flip", "zeros", "noise", "junk"])
    if kind == "flip":
        stop = start + 1
        return data[:start] + bytes([data[start] ^ 1 << rng.randrange(8)]) + data[stop:], start, stop
    if kind == "junk":
        return data[:start] + rng.randbytes(rng.randrange(1, 300)) + data[start:], start, start
    inner = {"cut": b"", "zeros": bytes(stop - start), "noise": rng.randbytes(stop - start)}[kind]
    return data[:start] + inner + data[stop:], start, stop


def facts(outcomes: Outcomes) -> dict[str, list[object]]:
    """Address -> what was read under it; a page above the limit is known by its address, too."""
    found: dict[str, list[object]] = {}
    for one in outcomes:
        if isinstance(one, RawDocument):
            found.setdefault(one.url, []).append(one.content)
        elif isinstance(one, Skipped):
            found.setdefault(one.url, []).append(one.reason)
    return found


@pytest.mark.parametrize("is_arc", [False, True])
@pytest.mark.parametrize("ending", list(COMPRESSORS))
def test_what_was_not_touched_is_read_under_its_own_address(tmp_path: Path, ending: str, is_arc: bool) -> None:
    compress: Callable[[bytes], bytes] = COMPRESSORS[ending]
    rng = random.Random(f"{seed()} {ending} {is_arc}")
    path = tmp_path / f"crawl.{'arc' if is_arc else 'warc'}{ending}"
    for round_ in range(ROUNDS // (2 * len(COMPRESSORS))):
        members = [compress(random_record(rng, number, is_arc)) for number in range(rng.randrange(2, 7))]
        borders = [sum(map(len, members[:number])) for number in range(len(members) + 1)]
        sound = facts(read(path, b"".join(members), "arc" if is_arc else "warc", limits=LIMITS))
        assert list(sound) == [address(number) for number in range(len(members))]
        data, start, stop = damage(rng, b"".join(members))
        if not ending and borders[-1] - len(data) in {end - begin for begin, end in combinations(borders, 2)}:
            continue  # a cut as long as records are: the one before may end, by its length, where they did
        outcomes = read(path, data, "arc" if is_arc else "warc", limits=LIMITS)
        shared = is_arc and not ending  # the newline before a header, by which it is found, is the last record's end
        found = facts(outcomes)
        whole = [end <= start or stop <= begin - shared for begin, end in pairwise(borders)]
        for number, is_whole in enumerate(whole):
            if is_whole:
                assert found.get(address(number)) == sound[address(number)], (round_, number, start, stop, borders)
        is_cut_or_padded = len(data) == borders[-1] - (stop - start) or not any(data[start:])  # zeros: a tape's blocks
        is_clean_cut = {start, stop} <= set(borders) and is_cut_or_padded
        assert len(outcomes) >= sum(whole) + (not is_clean_cut), (round_, start, stop, borders)


@pytest.mark.parametrize("is_arc", [False, True])
def test_a_page_too_large_to_be_held_is_whole_where_the_next_header_is_damaged(tmp_path: Path, is_arc: bool) -> None:
    """Its own header is no other one that its length led over."""
    make = arc_record if is_arc else warc_record
    pages = [make(http(b"x" * size), url=address(number)) for number, size in enumerate((100, 40_000, 100, 100))]
    broken = pages[2].replace(b"20080430", b"x0080430") if is_arc else pages[2].replace(b"WARC/", b"WORC/")
    outcomes = read(tmp_path / "crawl", b"".join([*pages[:2], broken, pages[3]]), "arc" if is_arc else "warc", LIMITS)
    kinds = [type(one).__name__ for one in outcomes]
    assert kinds == ["RawDocument", "Skipped", "Damaged", "RawDocument"]
    assert facts(outcomes)[address(1)] == ["too-large"]
