"""What readers noted beside what was planned: entries of inputs.json, or an error that names the file."""

from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import seal
from refinery.pipelines.run.inputs_read.published import KIND, compare_inputs, dump_inputs, known_crc32c, parse_inputs
from refinery.pipelines.run.inputs_read.settle import settle_inputs
from refinery.transforms.core.input_sums.file_read import FileRead
from refinery.transforms.read.sources import InputChanged

NINE = "e3069283"  # of 123456789


def entry(path: str = "a", size: int = 9, digest: str = NINE) -> dict[str, Any]:
    return {"source": "s", "path": path, "size": size, "digest": digest}


def noted(begin: int, end: int, crc32c: str, path: str = "a") -> dict[str, Any]:
    return FileRead("s", path, begin, end, crc32c).plain()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (entry(), NINE),
        (entry(size=64 << 20), NINE),
        (entry(size=(64 << 20) + 1), ""),  # of a sample of it
        (entry("gs://b/a", 1 << 40), NINE),
        (entry("gs://b/a", digest="4waSgw=="), ""),
        (entry("https://h/a", digest=NINE), ""),  # whatever a server calls it
    ],
)
def test_which_digests_are_checksums_of_the_whole_file(given: dict[str, Any], expected: str) -> None:
    assert known_crc32c(given) == expected


def test_entries_in_the_order_of_the_inputs() -> None:
    large = entry("b", 1 << 30, "12345678")
    reports = [{"reads": [noted(0, 1 << 30, "00000001", "b")]}, {"reads": [noted(0, 9, NINE)]}]
    expected = [("a", 9, NINE), ("b", 1 << 30, "00000001"), ("c", 9, "")]
    found = settle_inputs([entry(), large, entry("c")], reports)
    assert found is not None
    assert [(each["path"], each["size"], each["crc32c"]) for each in found] == expected
    assert parse_inputs(dump_inputs(found), "f") == found
    assert list(compare_inputs(found, [entry(), large, entry("c")])) == []
    assert settle_inputs([entry()], [*reports, {"counters": []}]) is None  # a wave of an older version


@pytest.mark.parametrize(
    ("given", "reads", "said"),
    [
        (entry(), [noted(0, 9, "00000001")], f"CRC-32C 00000001 and {NINE}"),
        (entry(digest="x"), [noted(0, 9, "00000001"), noted(0, 9, "00000002")], "00000001 and 00000002"),
        (entry(), [noted(0, 4, "00000001"), noted(4, 9, "00000002")], NINE),
    ],
)
def test_a_file_that_changed_is_named(given: dict[str, Any], reads: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(InputChanged, match=rf"a: changed while the run read it: .*{said}.*choose another --output"):
        settle_inputs([given], [{"reads": reads[:1]}, {"reads": reads[1:]}])


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"kind": "refinery-run", "inputs": []}, "'refinery-inputs' expected"),
        ({"kind": KIND, "inputs": {}}, "with a list of inputs"),
        ({"kind": KIND, "inputs": [{"source": "s", "path": "a", "size": True, "crc32c": ""}]}, "the fields source"),
        ({"kind": KIND, "inputs": [{"source": "s", "path": "a", "size": 1, "crc32c": "0"}]}, "8 hexadecimal digits"),
    ],
)
def test_what_is_no_file_of_inputs(payload: dict[str, Any], said: str) -> None:
    with pytest.raises(FormatError, match=said):
        parse_inputs(seal({"schema_version": 1, **payload}), "inputs.json")


def test_what_verify_says_of_entries_that_do_not_fit() -> None:
    read = {"source": "s", "path": "a", "size": 9, "crc32c": "00000001"}
    assert list(compare_inputs([read], [entry()])) == [
        f"inputs.json: 'a': crc32c 00000001 found, {NINE} expected from _run.json"
    ]
    assert list(compare_inputs([read], [entry("b")])) == [
        "inputs.json: 'a' of source 's' with 9 bytes is not in _run.json",
        "inputs.json: 'b' of source 's' with 9 bytes is missing",
    ]
