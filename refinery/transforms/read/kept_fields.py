"""The fields of records that a source keeps beside the text (`fields: keep`), as one object of JSON."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from refinery.transforms.core.data_text.json_members import is_readable, joined, raw_members, to_json, without
from refinery.transforms.core.document import FIELDS
from refinery.transforms.core.stage import Note
from refinery.transforms.read.task import ReadTask
from refinery.transforms.read.values.inexact import LOST, MAX_DIGITS, Written

KEPT = Note(FIELDS, str, "the fields of the record that its source keeps, as a JSON object", column=True)
_UNDECODED = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of a byte
Members = Callable[[], Mapping[str, str]]


def members_of_line(data: bytes) -> Mapping[str, str]:
    """The fields of a line of JSON as they are written. Raises ValueError for anything but an object."""
    return raw_members(_UNDECODED.sub("\ufffd", data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")))


def kept_fields(record: Mapping[str, Any], task: ReadTask, members: Members | None = None) -> tuple[str, bool, bool]:
    """The fields that the source keeps, whether each is exactly the record's, and whether none was lost. members: the
    same fields as they are written, where that is known.

    All fields but the text are kept, those that have a column of their own (the address, `meta_fields`), and those
    that a list does not name. Cost: of JSON Lines twice that of parsing the line.
    """
    exact, whole = True, True
    written: dict[str, str] = {}
    if members is not None and type(record) is dict:
        written = dict(members())
    else:
        for name, value in record.items():
            if value is LOST:
                whole = False
                continue
            written[name], is_exact = to_json(value)
            exact = exact and is_exact
    try:
        found = joined(chosen(written, task))
    except TypeError:  # a lone surrogate in a name
        found = ""
    if found and is_readable(found):
        return found, exact, whole
    return joined(chosen(_readable(written), task)), False, whole


def chosen(members: Mapping[str, str], task: ReadTask) -> dict[str, str]:
    """Those of the members that the source keeps."""
    for name in (task.text_field, task.url_field, *task.meta_fields):
        members = without(members, name)
    if task.fields != "keep":
        members = {name: members[name] for name in task.fields if name in members}
    return dict(members)


def _readable(members: Mapping[str, str]) -> dict[str, str]:
    """The members without what not every reader takes."""
    read = {
        name: json.loads(value, parse_int=_integer, parse_float=_float, parse_constant=str)
        for name, value in members.items()
    }
    return raw_members(to_json(read)[0])


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _float(digits: str) -> float | str:
    number = Written(digits)
    return number if math.isfinite(number) else digits
