"""What becomes of rows: the three streams joined, and what does not fit refused."""

from typing import Any

import pytest

from refinery.transforms.read.task import ReadTask
from refinery.transforms.write.rows.rows import Edit, Label, RowError, Rows

TASK = ReadTask("in/a.jsonl", "jsonl", "s", 0, 0)
LABELS = (Label("dup", False), Label("of", ""))


def test_rows_texts_and_labels_are_joined() -> None:
    rows = Rows([0, 3, 5, 9], [(3, "t"), (9, "")], LABELS, [(5, (True, "x")), (9, (False, "y"))], handed_on=[4, 10])
    empty = (False, "")
    assert dict(rows.edits(TASK)) == {
        0: Edit(None, empty),
        3: Edit("t", empty),
        4: None,
        5: Edit(None, (True, "x")),
        9: Edit("", (False, "y")),
        10: None,
    }
    assert Rows(None, columns=[]).is_plain
    assert list(Rows([1, 2]).edits(TASK)) == [(1, None), (2, None)]
    assert list(Rows([1, 2], [(2, "t")]).edits(TASK)) == [(1, None), (2, Edit("t"))]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (Rows([1, 1]), "a.jsonl@1: .*ascending rows"),
        (Rows([2, 1]), "a.jsonl@1: .*ascending rows"),
        (Rows([1, 2], handed_on=[2]), "a.jsonl@2: .*ascending rows"),
        (Rows([1, 3], texts=[(2, "x")]), "a.jsonl@2: a text or labels are given for this row"),
        (Rows([1, 3], texts=[(4, "x")]), "a.jsonl@4: a text or labels"),
        (Rows([1, 3], texts=[(3, "x"), (1, "x")]), "a.jsonl@1: a text or labels"),
        (Rows([1, 3], texts=[(2, "x")], handed_on=[2]), "a.jsonl@2: a text or labels"),
        (Rows([1], columns=LABELS, labels=[(1, (True,))]), "a.jsonl@1: 1 labels given, 2 are needed"),
        (Rows([1], columns=LABELS, labels=[(1, ("", ""))]), "label dup: .* given, true or false is needed"),
        (Rows([1], columns=LABELS, labels=[(1, (1, ""))]), "label dup: 1 .an integer. given"),
        (Rows([1], columns=LABELS, labels=[(1, (True, None))]), "label of: null given, text is needed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error_that_names_the_row(rows: Rows, problem: str) -> None:
    with pytest.raises(RowError, match=problem):
        list(rows.edits(TASK))


@pytest.mark.parametrize(
    ("empty", "value", "is_right"),
    [
        ("", "\x00é", True), ("", None, False), (False, True, True), (False, 1, False), (0, 1 << 62, True),
        (0, 1 << 63, False), (0, True, False), (0, 1.0, False), (0.0, 1.5, True), (0.0, 2, True),
        (0.0, float("nan"), False), (0.0, float("inf"), False), (0.0, True, False),
    ],
)  # fmt: skip
def test_a_label_has_one_type(empty: Any, value: Any, is_right: bool) -> None:
    label = Label("a", empty)
    if is_right:
        assert type(label.checked(value)) is type(empty)
    else:
        with pytest.raises(ValueError, match="label a: "):
            label.checked(value)


@pytest.mark.parametrize(
    ("name", "empty"), [("", ""), ("a b", ""), ('"', ""), ("é", ""), ("1", ""), ("a", None), ("a", [])]
)
def test_names_and_types_of_labels_are_limited(name: str, empty: Any) -> None:
    with pytest.raises(ValueError, match="label"):
        Label(name, empty)


def test_a_label_is_there_once() -> None:
    with pytest.raises(ValueError, match="each name is allowed once"):
        Rows([], columns=(Label("a", ""), Label("a", False)))
