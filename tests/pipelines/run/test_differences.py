"""What tells two runs apart is said in words: keys, files, stages."""

from typing import Any

import pytest

from refinery.pipelines.run.differences import differences, input_differences, phase_differences


def file(path: str, digest: str = "00", source: str = "s") -> dict[str, Any]:
    return {"source": source, "path": path, "size": 1, "digest": digest}


def stages(*names: str, **fields: Any) -> dict[str, Any]:
    entries = [{"name": name, "version": 1, "schemes": [], "libraries": {}} for name in names]
    entries[-1] |= fields
    return {"clean": entries}


BEFORE = {"recipe": {"a": {"b": [1, 2]}}, "inputs": [file("x")], "stages": stages("read", "url")}


def test_differences_are_said_in_words() -> None:
    after = {"recipe": {"a": {"b": [1, 3]}}, "inputs": [file("y")], "stages": stages("url", "read")}
    assert differences(BEFORE, after) == (
        "a.b[1] is 2 there, 3 here; 1 input file not there (y); 1 input file gone (x); "
        "clean has the stages read, url there, url, read here"
    )
    assert differences(BEFORE, BEFORE) == "a published corpus that it names differs"
    assert differences(
        {**BEFORE, "environment": {"python": "3.11"}}, {**BEFORE, "environment": {"python": "3.12"}}
    ) == ("python is '3.11' there, '3.12' here")


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        (None, {"gopher": {"min_words": 50}}, "a is off there, on here"),
        ({"gopher": {"min_words": 50}}, None, "a is on there, off here"),
        (["x" * 100], [], "a is ['" + "x" * 57 + "… there, [] here"),
        (None, 1, "a is None there, 1 here"),
    ],
)
def test_a_section_is_on_or_off_and_a_long_value_is_cut(there: Any, here: Any, words: str) -> None:
    assert differences({**BEFORE, "recipe": {"a": there}}, {**BEFORE, "recipe": {"a": here}}) == words


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        ([file("a")], [file("a")], []),
        ([file("a")], [file("a"), file("b"), file("c")], ["2 input files not there (b, c)"]),
        ([file("a"), file("b")], [file("a")], ["1 input file gone (b)"]),
        ([file("a")], [file("a", "11")], ["1 input file with other bytes (a)"]),
        ([file("a")], [file("a", source="t")], ["1 input file not there (a)", "1 input file gone (a)"]),
        ([], [file(name) for name in "abcde"], ["5 input files not there (a, b, c and 2 more)"]),
        ([], [file("a\x1b[2J")], [r"1 input file not there (a\x1b[2J)"]),
        ("nonsense", [file("a")], ["1 input file not there (a)"]),
        ([1, file("a")], [file("a")], []),
    ],
)
def test_input_files_by_name(there: Any, here: list[dict[str, Any]], words: list[str]) -> None:
    assert input_differences(there, here) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"version": 2}, "version of the stage url is 1 there, 2 here"),
        ({"libraries": {"idna": "3"}}, "libraries of the stage url is {} there, {'idna': '3'} here"),
        ({"files": [["list", "00"]]}, "the file list of the stage url differs"),
        ({"code": "00"}, "the code of the stage url differs"),
    ],
)
def test_stages_by_what_they_declare(fields: dict[str, Any], words: str) -> None:
    after = {**BEFORE, "stages": stages("read", "url", **fields)}
    assert differences(BEFORE, after) == words == phase_differences(BEFORE, after, "clean", ("a",))
    assert differences({**BEFORE, "stages": None}, BEFORE) == "the stages are not recorded there"


def test_of_the_files_of_a_stage_those_that_differ() -> None:
    there, here = ([["a", "0"], ["b", digest]] for digest in "01")
    before, after = (stages("read", "url", files=files) for files in (there, here))
    assert differences({**BEFORE, "stages": before}, {**BEFORE, "stages": after}) == (
        "the file b of the stage url differs"
    )


def test_a_phase_is_told_apart_by_its_own_sections() -> None:
    after = {**BEFORE, "recipe": {"a": {"b": [1, 3]}, "c": 1, "line_dup": {}}, "inputs": [file("x"), file("z")]}
    words = "1 input file not there (z); c is None there, 1 here"
    assert phase_differences(BEFORE, after, "clean", ("c",), ("line_dup",)) == words
    after["recipe"]["line_dup"] = {"min": 1}
    assert "line_dup is off there, on here" in phase_differences(BEFORE, after, "clean", (), ("line_dup",))


def test_what_a_forged_run_says_cannot_steer_a_terminal() -> None:
    forged = {**BEFORE, "recipe": {"\x1b]0;x\x07": 1}, "stages": stages("\x1b[2J")}
    assert differences(forged, BEFORE).isprintable()


def test_more_than_a_few_are_counted() -> None:
    after = {**BEFORE, "recipe": dict.fromkeys("bcdefgh", 1)}
    assert differences(BEFORE, after).count(";") == 5 and differences(BEFORE, after).endswith("; and 3 more")
