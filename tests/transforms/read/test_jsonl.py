import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refinery.transforms.read.lines as lines_module
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument, hash64
from refinery.transforms.read.fields import field_of, scalar_of
from refinery.transforms.read.formats.jsonl import parse_json
from refinery.transforms.read.sources import LimitParams, read_task
from tests.sampling import examples
from tests.transforms.read_fixtures import COMPRESSORS, offset_of, read, summary, task_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.jsonl"


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (b'{"text": "words"}', "text"),
        (b'{"text": "words", "n": NaN}', "text"),
        (b'{"text": "a lone \\ud800 surrogate"}', "text"),
        (b'{"text": "words", "n": 123456789012345678901234567890}', "text"),
        (b'{"text": ""}', "empty"),
        (b'{"text": " \\n"}', "empty"),
        (b'{"text": "\\udfff"}', "empty"),
        (b'{"text": null}', "empty"),
        (b'{"body": "words"}', "!MissingField"),
        (b'{"text": 5}', "!BadField"),
        (b'{"text": ["words"]}', "!BadField"),
        (b"[]", "!BadJson"),
        (b'"words"', "!BadJson"),
        (b"null", "!BadJson"),
        (b'{"text": "words"', "!BadJson"),
        (b'{"text": "\xff"}', "!BadJson"),
        (b"\x00\x01", "!BadJson"),
        (b"[" * 100_000, "!BadJson"),
        (b'{"text": ' + b"9" * 6_000 + b"}", "!BadField"),
        (b'{"text": "' + b"x" * 600 + b'"}', "too-large"),
        (b'{"text": "x", "y": "' + b"x" * 200_000 + b'"}', "too-large"),
    ],
)
def test_each_kind_of_line_has_its_outcome(path: Path, line: bytes, outcome: str) -> None:
    good = b'{"text": "good"}\n'
    for compress in COMPRESSORS.values():
        data = compress(good + line + b"\r\n" + b"\n  \r\n" + good)
        outcomes = read(path, data, "jsonl", LimitParams(max_record_bytes=500, max_decompressed_bytes=150_000))
        assert summary(outcomes) == ["text", outcome, "text"]
        assert outcomes[1].origin == f"{path}@{len(good)}"


def test_fields_become_a_document(path: Path) -> None:
    record = {
        "body": {"text": "Wörter \ud83d\ude00"},
        "meta": {"url": "http://a.example/\ud800"},
        "meta.id": "plain key first",
        "date": "2024",
        "score": 0.5,
        "flag": True,
        "tags": ["a", {"b": 1}],
        "none": None,
        "big": 1 << 70,
    }
    fields: dict[str, Any] = {"text_field": "body.text", "url_field": "meta.url", "id_field": "meta.id"}
    kept = ("score", "flag", "tags", "none", "big", "absent", "date.x")
    data = b"\xef\xbb\xbf" + json.dumps(record).encode()
    (doc,) = read(path, data, "jsonl", **fields, meta_fields=kept, content="html")
    assert doc == RawDocument(
        content="Wörter 😀",
        is_html=True,
        charset="",
        url="http://a.example/",
        source="src",
        origin=f"{path}@0",
        position=3 << 40,
        meta={
            "date": "2024",
            "record_id": "plain key first",
            "score": 0.5,
            "flag": 1,
            "tags": '["a", {"b": 1}]',
            "big": str(1 << 70),
        },
    )
    assert field_of({"a": {"b": {"c": 1}}, "a.b": 2}, "a.b") == 2
    assert field_of({"a": {"b": {"c": 1}}}, "a.b.c") == 1
    assert scalar_of(float("nan")) == "nan"


lines = st.one_of(
    st.builds(lambda text: orjson.dumps({"text": text}), st.text(max_size=30)),
    st.builds(lambda size: orjson.dumps({"text": "x" * size}), st.integers(1, 300)),
    st.sampled_from([b"", b" ", b"junk", b'{"text": 1}']),
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n"])), max_size=40),
    st.booleans(),
    st.integers(1, 6),
    st.sampled_from([1, 16, 64, 100]),
    st.sampled_from(["", ".gz", ".zst"]),
    st.integers(0, 300),
)
def test_parts_give_what_the_whole_gives(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[tuple[bytes, bytes]],
    has_last_newline: bool,
    parts: int,
    block: int,
    ending: str,
    cut: int,
) -> None:
    path = tmp_path / f"x.jsonl{ending}"
    data = b"".join(line + end for line, end in rows)
    data = data if has_last_newline else data.rstrip(b"\r\n")
    monkeypatch.setattr(lines_module, "BLOCK", block)
    limits = LimitParams(max_record_bytes=200, max_decompressed_bytes=250)
    whole = COMPRESSORS[ending](data)
    for stored in (whole, whole[:-cut] if ending and cut else whole):
        expected = read(path, stored, "jsonl", limits, sample=0.8)
        task = task_for(path, "jsonl", sample=0.8, parts=parts)
        found = [one for part in range(parts) for one in read_task(replace(task, part=part), limits)]
        assert sorted(found, key=offset_of) == expected
        assert ending or found == expected
    reference = [line for line in data.split(b"\n") if line.strip()]
    assert len(read(path, whole, "jsonl", limits)) == len(reference)


def test_a_file_that_breaks_off_costs_its_tail(path: Path) -> None:
    path = path.with_suffix(".jsonl.gz")
    data = gzip.compress(b"".join(orjson.dumps({"text": f"words {at * 7919}"}) + b"\n" for at in range(50)))
    for cut in range(1, len(data)):
        words = summary(read(path, data[:cut], "jsonl"))
        assert words[-1] == "!Truncated" and set(words[:-1]) <= {"text"}
    broken = bytearray(data)
    for at in range(12, len(data) - 10):
        broken[at] ^= 1
        words = summary(read(path, bytes(broken), "jsonl"))
        assert words[-1] in ("!BadGzip", "!Truncated"), at
        broken[at] ^= 1
    assert summary(read(path, data + data + b"garbage", "jsonl")) == ["text"] * 100 + ["!BadGzip"]
    assert summary(read(path, data + data + bytes(512), "jsonl")) == ["text"] * 100


def test_a_line_over_the_limit_is_not_held(path: Path) -> None:
    data = b'{"text": "' + b"x" * 5_000_000 + b'"}'
    outcomes = read(
        path, data + b'\n{"text": "y"}', "jsonl", LimitParams(max_record_bytes=1000, max_decompressed_bytes=2000)
    )
    assert outcomes[0] == Skipped("too-large", f"{path}@0", len(data))
    assert summary(outcomes) == ["too-large", "text"]


def test_sample_and_cap(path: Path) -> None:
    data = b"".join(orjson.dumps({"text": f"words {at}"}) + b"\n" for at in range(60))
    everything = [one for one in read(path, data, "jsonl") if isinstance(one, RawDocument)]
    kept = [one for one in everything if hash64("sample", 3, one.origin) < 0.5 * 2**64]
    outcomes = read(path, data, "jsonl", sample=0.5, seed=3)
    assert [one for one in outcomes if isinstance(one, RawDocument)] == kept
    assert len(outcomes) == 60
    capped = read(path, data, "jsonl", sample=0.5, seed=3, cap=5)
    assert [one for one in capped if isinstance(one, RawDocument)] == kept[:5]


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_any_bytes_are_read(path: Path, data: bytes) -> None:
    for outcome in [*read(path, data, "jsonl"), *read(path, gzip.compress(data), "jsonl")]:
        assert isinstance(outcome, RawDocument | Skipped | Damaged)


@pytest.mark.parametrize(
    ("record", "url", "meta"),
    [
        (  # Dolma
            {"id": "7", "text": "x", "source": "s", "added": "2024", "created": "2023-01-02", "metadata": {"url": "u"}},
            "u",
            {"date": "2023-01-02", "record_id": "7"},
        ),
        (  # datatrove
            {"text": "x", "id": "7", "metadata": {"url": "u", "date": "2024-05-01", "dump": "d"}},
            "u",
            {"date": "2024-05-01", "record_id": "7"},
        ),
        ({"text": "x", "id": "7", "url": "own", "metadata": {"url": "u"}}, "own", {"record_id": "7"}),
        ({"text": "x", "id": 7, "metadata": {"url": "u"}}, "", {}),
        ({"text": "x", "id": "7", "metadata": "none"}, "", {}),
        ({"text": "x", "id": "7", "url": "own"}, "own", {}),
    ],
)
def test_the_forms_of_dolma_and_datatrove_are_recognised(
    tmp_path: Path, record: dict[str, object], url: str, meta: dict[str, object]
) -> None:
    (found,) = read(tmp_path / "a", json.dumps(record).encode(), "jsonl")
    assert isinstance(found, RawDocument)
    assert (found.url, dict(found.meta)) == (url, meta)
    (named,) = read(
        tmp_path / "a", json.dumps(record).encode(), "jsonl", url_field="u", date_field="d", id_field="text"
    )
    assert isinstance(named, RawDocument)
    assert (named.url, dict(named.meta)) == ("", {"record_id": "x"})


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_not_guessed(coding: str) -> None:
    """Lines of UTF-16 end in the middle of a character, so what Python's reader guesses is right by chance alone."""
    assert parse_json('{"text": "x", "n": 1}'.encode(coding)) is None
