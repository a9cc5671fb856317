import gzip
import random
from pathlib import Path

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument, hash64
from refinery.transforms.read.sources import LimitParams
from tests.sampling import examples
from tests.transforms import read_fixtures as made
from tests.transforms.read_fixtures import COMPRESSORS, HTML, arc_record, http, page, read, summary, warc_record

SMALL = LimitParams(max_record_bytes=2000, max_decompressed_bytes=10_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crawl.warc"


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        (warc_record(http()), "html"),
        (warc_record(http(headers=())), "html"),
        (warc_record(http(b"Plain words", ["Content-Type: text/plain; charset=utf-8"])), "text"),
        (warc_record(http(headers=["Content-Type: image/png"])), "content-type"),
        (
            warc_record(http(headers=["Content-Type: image/png"]), extra=["WARC-Identified-Payload-Type: text/html"]),
            "html",
        ),
        (warc_record(http(), extra=["WARC-Identified-Payload-Type: image/png"]), "content-type"),
        (warc_record(http(), extra=["WARC-Identified-Payload-Type: "]), "html"),
        (warc_record(http(status="404 Not Found")), "http-status"),
        (warc_record(http(status="301 Moved")), "http-status"),
        (warc_record(http(b"")), "empty"),
        (warc_record(http(b" \r\n\t")), "empty"),
        (warc_record(b""), "empty"),
        (warc_record(b"no HTTP at all"), "!BadHttp"),
        (warc_record(b"\r\n" + http()), "html"),
        (warc_record(b"\n\n" + http(status="404 Not Found")), "http-status"),
        (warc_record(b"\n no HTTP at all"), "!BadHttp"),
        (arc_record(b"\n" + http()), "html"),
        (warc_record(HTML, "resource", extra=["Content-Type: text/html"]), "html"),
        (warc_record(HTML, "resource"), "html"),
        (warc_record(b"{}", "resource", extra=["Content-Type: application/json"]), "content-type"),
        (warc_record(b"Some words.", "conversion", extra=["Content-Type: text/plain"]), "text"),
        (warc_record(b"Some words.", "conversion"), "text"),
        (warc_record(b"software: x", "warcinfo"), "record-type"),
        (warc_record(b"GET / HTTP/1.1", "request"), "record-type"),
        (warc_record(b"outlink: x", "metadata"), "record-type"),
        (warc_record(http(b""), "revisit"), "record-type"),
        (warc_record(b"x", "of-my-own-invention"), "record-type"),
        (warc_record(b"2024 a.example", "response", "dns:a.example", ["Content-Type: text/dns"]), "record-type"),
        (warc_record(http(b"x" * 3000)), "too-large"),
        (warc_record(http(b"x" * 20_000)), "too-large"),
    ],
)
def test_each_kind_of_record_has_its_outcome(path: Path, record: bytes, outcome: str) -> None:
    for compress in COMPRESSORS.values():
        members = [compress(page(0)), compress(record), compress(page(2))]
        outcomes = read(path, b"".join(members), limits=SMALL)
        assert summary(outcomes) == ["html", outcome, "html"]
        assert [made.offset_of(one) for one in outcomes] == [0, len(members[0]), len(members[0] + members[1])]


def test_a_page_carries_what_is_known_of_it(path: Path) -> None:
    record = warc_record(http(headers=['Content-Type: Text/HTML; charset="EUC-JP"']), url="<http://a.example/b c>")
    (doc,) = read(path, record)
    assert doc == RawDocument(
        content=HTML,
        is_html=True,
        charset="euc-jp",
        url="http://a.example/b c",
        source="src",
        origin=f"{path}@0",
        position=3 << 40,
        meta={"date": "2024-05-01T12:00:00Z", "record_id": "<urn:uuid:00000000-0000-0000-0000-000000000001>"},
    )
    (text,) = read(path, warc_record("Grüße".encode(), "conversion"))
    assert isinstance(text, RawDocument)
    assert (text.is_html, text.charset, text.content) == (False, "utf-8", "Grüße".encode())


def test_content_parameter_overrides_the_type(path: Path) -> None:
    assert summary(read(path, page(0), content="text")) == ["text"]


def test_old_and_odd_headers_are_read(path: Path) -> None:
    clueweb = page(0).replace(b"WARC/1.0", b"WARC/0.18")
    bare_newlines = b"WARC/1.1\nwarc-type:response\ncontent-length:%d\n\n" % len(http()) + http().replace(
        b"\r\n", b"\n"
    )
    bare_newlines = bare_newlines.replace(
        b"length:%d" % len(http()), b"length:%d" % len(http().replace(b"\r\n", b"\n"))
    )
    folded = page(2).replace(b"WARC-Target-URI: http", b"WARC-Target-URI:\r\n http")
    outcomes = read(path, clueweb + bare_newlines + b"\n\n\n\n" + folded)
    assert summary(outcomes) == ["html"] * 3
    assert isinstance(outcomes[2], RawDocument)
    assert outcomes[2].url == "http://a.example/2"


@pytest.mark.parametrize("ending", [".gz", ".zst", ".lz4"])
def test_a_file_compressed_as_a_whole_counts_offsets_in_what_is_inside(path: Path, ending: str) -> None:
    pages = [page(number) for number in range(4)]
    outcomes = read(path, COMPRESSORS[ending](b"".join(pages)))
    assert summary(outcomes) == ["html"] * 4
    assert [made.offset_of(one) for one in outcomes] == [sum(map(len, pages[:at])) for at in range(4)]


def test_members_that_are_no_records_are_joined(path: Path) -> None:
    data = b"".join(page(number) for number in range(6))
    cut = b"".join(gzip.compress(data[at : at + 100]) for at in range(0, len(data), 100))
    assert summary(read(path, cut)) == ["html"] * 6


@pytest.mark.parametrize("ending", list(COMPRESSORS))
def test_agrees_with_fastwarc_on_sound_archives(path: Path, ending: str) -> None:
    kinds = ["warcinfo", "request", "response", "resource", "conversion", "metadata"]
    rng = random.Random(5)
    records = [
        warc_record(http(HTML * rng.randrange(1, 40)), rng.choice(kinds), f"http://a.example/{at}") for at in range(50)
    ]
    data = b"".join(map(COMPRESSORS[ending], records))
    ours = {made.offset_of(one): one for one in read(path, data)}
    with path.open("rb") as file:
        theirs = {r.stream_pos: r.reader.read() for r in ArchiveIterator(file, record_types=WarcRecordType.any_type)}
    assert list(ours) == list(theirs)
    pages = {offset: one.content for offset, one in ours.items() if isinstance(one, RawDocument) and not one.charset}
    assert pages
    assert all(isinstance(content, bytes) and theirs[offset].endswith(content) for offset, content in pages.items())


def test_zstandard_with_a_dictionary_in_front(path: Path) -> None:
    pages = [page(number) for number in range(60)]
    trained = zstandard.train_dictionary(2048, [*pages])
    compressor = zstandard.ZstdCompressor(dict_data=trained)
    for stored in (trained.as_bytes(), zstandard.compress(trained.as_bytes())):
        front = b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored
        outcomes = read(path, front + b"".join(compressor.compress(one) for one in pages))
        assert summary(outcomes) == ["html"] * 60
        assert made.offset_of(outcomes[0]) == len(front)


# Damage: one record each.


@pytest.mark.parametrize("ending", list(COMPRESSORS))
@pytest.mark.parametrize("length", ["5", "700", "99999", "-1", "abc", "9" * 30, " "])
def test_a_wrong_length_costs_its_record_alone(path: Path, ending: str, length: str) -> None:
    records = [page(0), warc_record(http(), length=length), page(2), page(3)]
    outcomes = read(path, b"".join(map(COMPRESSORS[ending], records)))
    assert [word[:4] for word in summary(outcomes)] == [
        "html",
        "!Bad" if len(length) < 5 or length == "9" * 30 else "!Tru",
        "html",
        "html",
    ]
    damaged = outcomes[1]
    assert isinstance(damaged, Damaged)
    assert damaged.size > 0 and damaged.data


@pytest.mark.parametrize("ending", [".gz", ".zst", ".lz4"])
def test_a_damaged_member_costs_its_record_alone(path: Path, ending: str) -> None:
    members = [COMPRESSORS[ending](page(number)) for number in range(4)]
    sound = read(path, b"".join(members))
    for at in range(len(members[1])):
        broken = bytearray(members[1])
        broken[at] ^= 0x40
        outcomes = read(path, members[0] + bytes(broken) + members[2] + members[3])
        words = summary(outcomes)
        assert len(words) == 4 and words[0] == words[2] == words[3] == "html", (at, words)
        second = outcomes[1]
        assert ending != ".gz" or isinstance(second, Damaged) or second == sound[1], at  # a few bits do not count


def test_garbage_between_records_is_one_damage(path: Path) -> None:
    for compress in (bytes, gzip.compress):
        data = compress(page(0)) + b"junk\r\nWARC/nonsense\r\n\x1f\x8b" * 9 + compress(page(1)) + compress(page(2))
        words = summary(read(path, data))
        assert words == ["html", words[1], "html", "html"]
        assert words[1].startswith("!")


def test_a_member_with_something_else_in_it_is_one_damage(path: Path) -> None:
    inner = gzip.compress(page(9))
    for junk in (b"not a record\r\n\r\n", inner, b"WARC/1.0\r\nno length: 1\r\n\r\n"):
        data = gzip.compress(page(0)) + gzip.compress(junk) + gzip.compress(page(2))
        assert summary(read(path, data)) == ["html", "!BadHeader", "html"]
    assert summary(read(path, gzip.compress(gzip.compress(page(0))))) == ["!BadHeader"]


@pytest.mark.parametrize("ending", list(COMPRESSORS))
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_truncated_file_costs_its_tail(path: Path, ending: str, is_whole: bool) -> None:
    compress = COMPRESSORS[ending]
    records = [page(number) for number in range(3)]
    members = [compress(b"".join(records))] if is_whole else [compress(record) for record in records]
    data = b"".join(members)
    ends = [sum(map(len, members[: at + 1])) for at in range(len(members))]
    slack = 4 if not ending else 0  # the last two line ends of a plain record do not matter
    for cut in range(0, len(data), 1 if ending == ".gz" else 3):
        words = summary(read(path, data[:cut]))
        good = [word for word in words if word == "html"]
        assert len(words) - len(good) <= 1 and words[: len(good)] == good, (cut, words)
        if not is_whole:
            complete = sum(end - slack <= cut for end in ends)
            at_border = cut in (0, *ends) or (slack and any(end - slack <= cut <= end for end in ends))
            assert len(good) == complete and (len(words) == complete) == bool(at_border), (cut, words)


@pytest.mark.parametrize("ending", list(COMPRESSORS))
def test_flipped_bits_never_raise_and_never_multiply(path: Path, ending: str) -> None:
    data = b"".join(COMPRESSORS[ending](page(number)) for number in range(5))
    rng = random.Random(7)
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(rng.choice([1, 1, 3, 20])):
            broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        outcomes = read(path, bytes(broken))
        assert 1 <= len(outcomes) <= 8
        origins = [one.origin for one in outcomes if isinstance(one, RawDocument)]
        assert len(set(origins)) == len(origins)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from(
                [
                    b"WARC/1.0\r\n",
                    b"\r\n\r\n",
                    b"Content-Length: 9\r\n",
                    b"\n",
                    b"\x1f\x8b\x08\0",
                    b"HTTP/1.1 200 OK\r\n",
                ]
            ),
            st.sampled_from(
                [page(0), gzip.compress(page(1)), arc_record(http()), COMPRESSORS[".zst"](page(2)), b"\0" * 9]
            ),
        ),
        max_size=12,
    )
)
def test_any_bytes_are_read_to_their_end(path: Path, pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    outcomes = read(path, data)
    assert len(outcomes) <= len(data)
    for compress in (COMPRESSORS[".gz"], COMPRESSORS[".lz4"]):
        assert len(read(path, b"".join(map(compress, pieces)))) <= len(data) + len(pieces)


def test_hostile_repetitions_take_linear_time(path: Path) -> None:
    endless = b"WARC/1.0\r\nContent-Length: 60000\r\n\r\n" * 20_000
    assert all(
        isinstance(one, Damaged)
        for one in read(path, endless, limits=LimitParams(max_record_bytes=9_000, max_decompressed_bytes=64_000))
    )
    assert len(read(path, b"\x1f\x8b\x08\x00" * 50_000)) == 1
    assert len(read(path, gzip.compress(b"") * 50_000)) == 0
    assert len(read(path, b"http://a 1.1.1.1 20200101000000 " * 20_000)) == 1


def test_a_record_over_the_limit_is_passed_without_being_held(path: Path) -> None:
    big = warc_record(b"x" * 3_000_000)
    outcomes = read(path, page(0) + big + page(1), limits=SMALL)
    assert summary(outcomes) == ["html", "too-large", "html"]
    assert summary(read(path, page(0) + big[:-50_000], limits=SMALL)) == ["html", "!Truncated"]
    assert summary(read(path, b"".join(map(gzip.compress, [page(0), big, page(1)])), limits=SMALL))[1:] == [
        "too-large",
        "html",
    ]


def test_a_length_that_lies_beyond_the_limit_hides_nothing(path: Path) -> None:
    for length in ("10001", "987654321012"):
        records = [page(0), warc_record(http(), length=length), page(2), page(3)]
        assert summary(read(path, b"".join(records), limits=SMALL)) == ["html", "!Truncated", "html", "html"]
        members = b"".join(map(gzip.compress, records))
        assert summary(read(path, members, limits=SMALL)) == ["html", "!Truncated", "html", "html"]


def test_blank_space_is_not_held_and_is_no_record(path: Path) -> None:
    assert summary(read(path, page(0) + b"\r\n" * 2_000_000 + page(1))) == ["html", "html"]
    assert read(path, b"\n" * 1_000_000) == []


def test_a_zip_bomb_is_too_large(path: Path) -> None:
    bomb = gzip.compress(b" " * 30_000_000)
    record = warc_record(http(bomb, ["Content-Type: text/html", "Content-Encoding: gzip"]))
    assert summary(
        read(path, record + page(1), limits=LimitParams(max_record_bytes=2000, max_decompressed_bytes=100_000))
    ) == ["too-large", "html"]


# ARC


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_arc_files(path: Path, compress: type[bytes]) -> None:
    version = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n\n"
    records = [
        arc_record(version, "filedesc://x.arc", "text/plain"),
        arc_record(http()),
        arc_record(b"20080430204825\n1.2.3.4\n", "dns:a.example", "text/dns"),
        arc_record(http(), "http://a.example/a b c"),
        arc_record(HTML, "ftp://a.example/x.html", "text/html; charset=latin1"),
        arc_record(http(), "http://a.example/2", "text/html 200 - - 0 x.arc"),
        arc_record(http(status="404 No")),
    ]
    data = b"".join(map(compress, records))
    outcomes = read(path, data, "arc")
    assert summary(outcomes) == ["record-type", "html", "record-type", "html", "html", "html", "http-status"]
    assert [made.offset_of(one) for one in outcomes] == [len(b"".join(map(compress, records[:at]))) for at in range(7)]
    assert isinstance(outcomes[3], RawDocument) and isinstance(outcomes[4], RawDocument)
    assert (outcomes[3].url, outcomes[3].meta) == ("http://a.example/a b c", {"date": "2008-04-30T20:48:25Z"})
    assert outcomes[4].charset == "latin1"


def test_damage_in_arc_files_costs_one_record_each(path: Path) -> None:
    records = [arc_record(http(), f"http://a.example/{at}") for at in range(5)]
    records[1] = arc_record(http(), length="20")
    records[3] = arc_record(http(), length="-1")
    assert summary(read(path, b"".join(records))) == ["html", "!BadLength", "html", "!BadHeader", "html"]
    for cut in range(len(records[0])):
        assert summary(read(path, records[0] + records[2] + records[4][:cut]))[:2] == ["html", "html"]


def test_arc_records_without_the_newline_between_them(path: Path) -> None:
    """Each length leads to the next header, so nothing is doubtful."""
    records = [arc_record(http(), f"http://a.example/{at}").removesuffix(b"\n") for at in range(3)]
    assert summary(read(path, b"".join(records), "arc")) == ["html"] * 3
    assert summary(read(path, gzip.compress(b"".join(records)), "arc")) == ["html"] * 3
    short = arc_record(http(), length="20").removesuffix(b"\n")
    assert summary(read(path, records[0] + short + b"\n" + records[2], "arc")) == ["html", "!BadLength", "html"]


# What a cut file holds of its last record


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_cut_page_is_kept_if_the_source_says_so(path: Path, ending: str) -> None:
    long = (
        b"<p>" + bytes(random.Random(5).choices(range(97, 123), k=400_000)) + b"</p>"
    )  # blocks of Zstandard are whole or lost
    data = COMPRESSORS[ending](page(0)) + (whole := COMPRESSORS[ending](page(1, long)))[: len(whole) * 3 // 4]
    assert summary(read(path, data)) == ["html", "!Truncated"]
    first, second, damage = read(path, data, keep_truncated=True)
    assert isinstance(first, RawDocument) and isinstance(second, RawDocument) and isinstance(damage, Damaged)
    assert "truncated" not in first.meta and second.meta["truncated"] is True
    assert second.origin == damage.origin and long.startswith(bytes(second.content)) and len(second.content) > 1000
    assert damage.error == "Truncated"


@pytest.mark.parametrize("record", [warc_record(b"x" * 500, "warcinfo"), warc_record(http(status="404 No"))])
def test_of_a_cut_record_that_is_no_page_nothing_is_kept(path: Path, record: bytes) -> None:
    assert summary(read(path, page(0) + record[:-100], keep_truncated=True)) == ["html", "!Truncated"]


def test_of_a_cut_lz4_frame_nothing_is_kept(path: Path) -> None:  # its library gives out no part of one
    data = COMPRESSORS[".lz4"](page(0)) + COMPRESSORS[".lz4"](page(1, HTML * 9000))[:-50]
    assert summary(read(path, data, keep_truncated=True)) == ["html", "!Truncated"]


@pytest.mark.parametrize("ending", [".gz", ".zst", ".lz4"])
def test_a_record_whose_end_is_zeros_is_damage(path: Path, ending: str) -> None:
    whole = COMPRESSORS[ending](page(1))
    for size in range(1, len(whole.rstrip(b"\0"))):
        found = summary(read(path, COMPRESSORS[ending](page(0)) + whole[:size] + bytes(len(whole) - size)))
        assert [one[0] for one in found] in (["h", "!"], ["h", "h", "!"]), size  # three: all but its checksum was there


def test_a_length_that_lies_is_no_cut_file_while_records_follow(path: Path) -> None:
    data = page(0) + warc_record(http(), length="100000") + page(2)
    assert summary(read(path, data, keep_truncated=True)) == ["html", "!Truncated", "html"]


# Sample and cap


def test_sample_is_by_origin_and_cap_stops_reading(path: Path) -> None:
    data = b"".join(warc_record(b"", "warcinfo") + page(at) for at in range(40))
    everything = [one for one in read(path, data) if isinstance(one, RawDocument)]
    sampled = read(path, data, sample=0.4, seed=7)
    kept = [one for one in sampled if isinstance(one, RawDocument)]
    assert kept == [one for one in everything if hash64("sample", 7, one.origin) < 0.4 * 2**64]
    assert sum(isinstance(one, Skipped) and one.reason == "not-sampled" for one in sampled) == 40 - len(kept)
    capped = read(path, data, sample=0.4, seed=7, cap=3)
    assert [one for one in capped if isinstance(one, RawDocument)] == kept[:3]
    assert capped == sampled[: len(capped)]
