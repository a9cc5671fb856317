"""Declarations of passes: what they refuse, what their notes hold, and that those of all lanes go together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.lanes.web import LANE as WEB
from refinery.pipelines.recipe.load_recipe import all_lanes
from refinery.transforms.dedup.chunk_copies.cut import CHUNK_COPIES
from refinery.transforms.dedup.cut_lines import LINE_CUTS, LINES, LineParams
from refinery.transforms.dedup.cut_substrings import SPAN_CUTS, SUBSTRINGS
from refinery.transforms.dedup.cutting_pass import (
    Compared,
    ComparingStage,
    Cuts,
    CuttingPass,
    Hashed,
    HashedColumn,
    check_together,
)
from refinery.transforms.dedup.records.record_batch import CUT, REMOVALS, SPAN, cut
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import SignatureParams, no_key, signature_table
from refinery.transforms.dedup.stages import URL_DUPLICATES
from refinery.transforms.dedup.verdicts import VERDICTS_SCHEMA, cut_column, verdicts_schema
from tests.beam import make_document

SIGNATURE = SignatureParams()
COMPARED = Compared(("web",), Parts(1), 1, no_key)
DOCS = [make_document("One line.\nAnother line.", "a"), make_document("", "b"), make_document("x 中文 y", "c")]


def of_lanes(kind: type[Any]) -> list[Any]:
    return list(dict.fromkeys(stage for lane in all_lanes() for stage in lane.stages if isinstance(stage, kind)))


OWN_CUTS = Cuts(column="own", note="own", dtype=CUT)


def own(**changes: Any) -> CuttingPass[Any]:
    """A pass that shares nothing with ours."""
    note = replace(LINES.notes[0], name="own")
    hashed = Hashed(name="own", columns=(HashedColumn("own", pa.list_(pa.uint64()), LINES.hashed.columns[0].make),))
    made = {"name": "own", "section": "own", "notes": (note,), "hashed": hashed, "cuts": OWN_CUTS}
    return replace(LINES, **{**made, **changes})


@pytest.mark.parametrize("stage", of_lanes(ComparingStage), ids=lambda stage: stage.name)
def test_columns_are_what_they_say_whatever_is_in_a_batch(stage: ComparingStage[Any]) -> None:
    whole = stage.hashed.made(DOCS, SIGNATURE)
    assert list(whole) == [column.name for column in stage.hashed.columns]
    for name, column in whole.items():
        assert column.to_pylist() == [stage.hashed.made([doc], SIGNATURE)[name][0].as_py() for doc in DOCS]
    assert all(len(column) == 0 for column in stage.hashed.made([], SIGNATURE).values())


@pytest.mark.parametrize("stage", of_lanes(CuttingPass), ids=lambda stage: stage.name)
def test_every_pass_is_found_and_finds(stage: CuttingPass[Any]) -> None:
    assert stage.params is not None
    found = stage.transform(stage.params(), COMPARED)
    assert isinstance(found, beam.PTransform) and found.label == stage.name


def test_ours_go_together_as_they_stand_in_their_lanes() -> None:
    passes = of_lanes(CuttingPass)
    assert {stage.name for stage in passes} == {"lines", "substrings", "chunk-copies"}
    for lane in all_lanes():
        check_together([stage for stage in lane.stages if isinstance(stage, ComparingStage)])


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((LINES, SUBSTRINGS), "substring_dup: given with line_dup, which changes the text before it cuts"),
        ((SUBSTRINGS, CHUNK_COPIES), "chunk_dup: given with substring_dup, which changes the text before it cuts"),
        ((LINES, own(hashed=LINES.hashed)), "own: given with line_dup, which has a column 'lines', too"),
        (
            (own(keeps=("cut_lines",), cuts=replace(OWN_CUTS, tag=LINE_CUTS.tag)), LINES),
            "line_dup: given with own, whose cuts have the same tag or column",
        ),
        (
            (own(keeps=("cut_lines",), cuts=replace(OWN_CUTS, column="cut")), LINES),
            "line_dup: given with own, whose cuts have the same tag or column",
        ),
    ],
)
def test_what_does_not_go_together(stages: Sequence[ComparingStage[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        check_together(stages)


def test_what_goes_together() -> None:
    check_together([URL_DUPLICATES, own(keeps=("cut_lines",)), LINES])
    check_together([URL_DUPLICATES, SUBSTRINGS, LINES])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"find": "no module"}, "stage own: find 'no module' given, module:NAME is allowed"),
        ({"judge": None}, "stage own: no judge or params given"),
        ({"notes": ()}, "stage own: no note 'own' given"),
        ({"notes": (replace(LINES.notes[0], name="own", type=int),)}, "stage own: no note 'own' given"),
    ],
)
def test_a_pass_that_is_not_whole_is_refused(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        own(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"find": "nosuch.module:find"}, "find 'nosuch.module:find' given: No module named 'nosuch'"),
        ({"find": "refinery.transforms.dedup.line_duplicates:nosuch"}, "has no attribute 'nosuch'"),
        ({"cuts": replace(OWN_CUTS, dtype=SPAN)}, "one column, cuts of .* are needed to count lines"),
    ],
)
def test_what_cannot_be_found_is_said(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        own(**changes).transform(LineParams(), COMPARED)


@pytest.mark.parametrize(
    ("dtype", "tag"),
    [
        ([("line", "<u4")], 200),
        ([("locator", "<u8")], 200),
        ([("locator", "<u8"), ("line", "<u8")], 200),
        ([("locator", "<u4"), ("line", "<u4")], 200),
        (CUT, 0),
        (CUT, 256),
    ],
)
def test_rows_that_verdicts_have_no_column_for_are_refused(dtype: Any, tag: int) -> None:
    with pytest.raises(ValueError, match=r"^cuts own: "):
        Cuts(column="own", note="own", dtype=np.dtype(dtype), tag=tag)


@pytest.mark.parametrize(
    "made",
    [
        lambda docs, signature: pa.array([0] * len(docs), pa.uint32()),
        lambda docs, signature: pa.array([0] * (len(docs) - 1), pa.uint64()),
        lambda docs, signature: pa.array([None] * len(docs), pa.uint64()),
    ],
)
def test_a_column_that_is_not_what_it_says_is_refused(made: Any) -> None:
    with pytest.raises(ValueError, match=r"^column own: .* made, 3 of uint64 are needed$"):
        HashedColumn("own", pa.uint64(), made).column(DOCS, SIGNATURE)


@given(st.lists(st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), max_size=4), max_size=4), st.randoms())
def test_cuts_come_to_the_document_as_they_were_found(found: list[list[tuple[int, int]]], order: Any) -> None:
    """From rows in any order to the column of verdicts, to the note, to the judge."""
    rows = [(row, *numbers) for row, each in enumerate(found) for numbers in each]
    order.shuffle(rows)
    for cuts, width in ((LINE_CUTS, 1), (SPAN_CUTS, 2)):
        batches = [batch for _, batch in cut(0, cuts.tag, np.array([row[: width + 1] for row in rows], cuts.dtype))]
        column = cut_column(len(found), batches, cuts)
        for row, numbers in enumerate(column.to_pylist()):
            assert cuts.read({cuts.note: cuts.noted(numbers)}) == sorted(each[:width] for each in found[row])


def test_verdicts_have_the_columns_of_passes_from_elsewhere_behind_ours() -> None:
    assert VERDICTS_SCHEMA.names[-2:] == ["cut", "cut_spans"]
    assert verdicts_schema(pa.string(), (LINE_CUTS, OWN_CUTS)).names == [*VERDICTS_SCHEMA.names, "own"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"column": "cut"}, "cuts cut: another column of verdicts/ has that name"),
        ({"column": "removed"}, "cuts removed: another column of verdicts/ has that name"),
        ({"tag": LINE_CUTS.tag}, f"cuts .*: tag {LINE_CUTS.tag} given, which other record batches have"),
        ({"tag": REMOVALS}, f"cuts own: tag {REMOVALS} given, which other record batches have; 128 to 255 is allowed"),
    ],
)
def test_verdicts_tell_cuts_apart(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        verdicts_schema(pa.string(), (replace(OWN_CUTS, **changes),))


def test_a_column_that_signatures_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^column rank: signatures/ have another column of that name$"):
        signature_table([], [], [], [], [], np.empty((0, 4), np.uint32), {"rank": pa.array([], pa.uint64())})


def test_a_pass_stands_where_the_text_is_still_the_same() -> None:
    places = ["opt-out", "page-license", "substrings", "lines"]
    assert list(WEB.places(own())) == places
    assert WEB.insert(own(), "lines").funnel.index("own") == WEB.funnel.index("lines") + 1
    with pytest.raises(ValueError, match=f"^after: 'pii' given, {', '.join(places)} is allowed$"):
        WEB.insert(own(), "pii")
    with pytest.raises(ValueError, match=r"^lane web: stage 'own' before phase 3 given"):
        replace(WEB, dedup=(*WEB.dedup, own()))
