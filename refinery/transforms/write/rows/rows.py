"""What becomes of a file's rows: which stay, which get another text, and which labels they get."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from heapq import merge
from types import MappingProxyType
from typing import Generic, TypeVar

from refinery.transforms.core.document import Scalar
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import given
from refinery.transforms.read.task import ReadTask

T = TypeVar("T")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
NAMED_APART = "refinery_"  # before the name of a label that a field has already
INTEGERS = range(-(1 << 63), 1 << 63)
DISORDER = "it follows a row that is not before it, and ascending rows are needed"
LEFT = "a text or labels are given for this row, and it is not among the rows that are kept, or not in their order"
# Type of a label's values -> what it is called.
KINDS: Mapping[type, str] = MappingProxyType({str: "text", bool: "true or false", int: "an integer", float: "a number"})


class RowError(ValueError):
    """A row that cannot be copied as it is asked for. The message names the file and the row."""

    def __init__(self, task: ReadTask, row: int, problem: str) -> None:
        super().__init__(f"{safe(task.path)}@{row}: {problem}")


def refuse_taken(task: ReadTask, row: int, columns: Iterable["Label"], names: Collection[str]) -> None:
    """Raise RowError where a label has the name of a field that is there."""
    if name := next((column.name for column in columns if column.name in names), ""):
        raise RowError(task, row, f"the field {name!r} is there already; give the label another name")


@dataclass(frozen=True, slots=True)
class Label:
    """A column behind those of the file. empty: the value of rows for which none is given; its type is the column's, in
    all rows of all files: str, bool, int (64 bits) or float (finite). There are no nulls.

    name: letters, digits and _ . - only. Every format can write it, and keys of JSON are compared with it fast.
    """

    name: str
    empty: Scalar

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"label: name {safe(self.name)!r} given, letters, digits and _ . - are allowed")
        if type(self.empty) not in KINDS:
            raise ValueError(
                f"label {self.name}: empty: {given(self.empty)} given, text, true, false or a number is allowed"
            )
        self.checked(self.empty)

    def named_apart(self) -> "Label":
        """The same under a name that fields hardly have."""
        return replace(self, name=NAMED_APART + self.name)

    @property
    def kind(self) -> type:
        """The type of its values."""
        return type(self.empty)

    def checked(self, value: Scalar) -> Scalar:
        """The value, of the column's type: a column of numbers makes such of integers. Raises ValueError."""
        if self.kind is float and type(value) is int:
            value = float(value)
        is_right = type(value) is self.kind
        if is_right and isinstance(value, float):
            is_right = math.isfinite(value)
        elif is_right and self.kind is int:
            is_right = value in INTEGERS
        if not is_right:
            raise ValueError(f"label {self.name}: {given(value)} given, {KINDS[self.kind]} is needed")
        return value


@dataclass(frozen=True, slots=True)
class Edit:
    """What is changed in a row. text: the new one, None for none. labels: a value for each column, () without any."""

    text: str | None = None
    labels: tuple[Scalar, ...] = ()


NO_ROW: tuple[int, None] = (1 << 63, None)  # behind the last one
Edits = Iterator[tuple[int, Edit | None]]


@dataclass(frozen=True)
class Rows:
    """What becomes of the rows of one file. A row is named by the number that its reader puts into `origin`: the byte
    at which a line begins in the decompressed file (JSONL), or the number of a row (CSV, TSV, Parquet). Every iterable
    ascends, and is read once.

    kept: the rows that stay. None means all bytes of the file, with its compression; nothing else may be given then.
    handed_on: further rows that stay, and are neither changed nor labelled. They may be lines without a JSON object,
    which readers report as damage, or lines above the limits. A table has every column in every row, so its rows get
    the empty labels. texts: (row, text), for rows of `kept` that get a new text. columns: the labels, which must be the
    same for all files. labels: (row, a value for each column), for rows of `kept` whose labels are not the empty ones.
    """

    kept: Iterable[int] | None
    texts: Iterable[tuple[int, str]] = ()
    columns: Sequence[Label] = ()
    labels: Iterable[tuple[int, Sequence[Scalar]]] = ()
    handed_on: Iterable[int] = ()

    def __post_init__(self) -> None:
        if self.kept is None and not self.is_plain:
            raise ValueError("kept: null given with texts, labels or rows, which need the rows that stay")
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError(f"labels: names {names} given, each name is allowed once")

    @property
    def is_plain(self) -> bool:
        """Whether nothing is given beside the rows that are kept."""
        given = (self.texts, self.columns, self.labels, self.handed_on)
        return all(isinstance(each, Sized) and not len(each) for each in given)

    @property
    def empty(self) -> Edit | None:
        """The edit of rows that get the empty labels; None without columns."""
        return Edit(labels=tuple(column.empty for column in self.columns)) if self.columns else None

    def edits(self, task: ReadTask) -> Edits:
        """Every row that stays, in order, with what is changed in it. Raises RowError where rows do not ascend, where a
        text or labels are given for a row that does not stay, and for a label of another type."""
        kept, last = () if self.kept is None else self.kept, -1
        if self.is_plain:
            for row in kept:
                if row <= last:
                    raise RowError(task, row, DISORDER)
                last = row
                yield row, None
            return
        texts, labels, empty = _Given(task, self.texts), _Given(task, self.labels), self.empty
        for row, is_kept in merge(((row, True) for row in kept), ((row, False) for row in self.handed_on)):
            if row <= last:
                raise RowError(task, row, DISORDER)
            last = row
            edit = empty if is_kept else None
            if labels.row <= row and is_kept:
                edit = Edit(labels=self._checked(task, row, labels.take(row)))
            if texts.row <= row and is_kept:
                edit = Edit(texts.take(row), edit.labels if edit else ())
            yield row, edit
        texts.end()
        labels.end()

    def _checked(self, task: ReadTask, row: int, values: Sequence[Scalar]) -> tuple[Scalar, ...]:
        if len(values) != len(self.columns):
            raise RowError(task, row, f"{len(values)} labels given, {len(self.columns)} are needed")
        try:
            return tuple(column.checked(value) for column, value in zip(self.columns, values, strict=True))
        except ValueError as error:
            raise RowError(task, row, str(error)) from None


class _Given(Generic[T]):
    """What is given for some rows, taken in their order. row: the next of them."""

    def __init__(self, task: ReadTask, values: Iterable[tuple[int, T]]) -> None:
        self.task, self.values = task, iter(values)
        self.next = next(self.values, None)
        self.row = self.next[0] if self.next else NO_ROW[0]

    def take(self, row: int) -> T:
        """What is given for this row. Raises RowError where something was left for an earlier one."""
        if self.next is None or self.row != row:
            raise RowError(self.task, self.row, LEFT)
        found, self.next = self.next[1], next(self.values, None)
        self.row = self.next[0] if self.next else NO_ROW[0]
        return found

    def end(self) -> None:
        """Raise RowError where something is left."""
        if self.next is not None:
            raise RowError(self.task, self.row, LEFT)
