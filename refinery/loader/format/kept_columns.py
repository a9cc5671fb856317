"""Columns of a corpus of texts for fields of its sources' records: their names, their types, and types as plain data.

A type is a name ("int64", "timestamp[us, UTC]", "decimal(9, 2)"), {"list": T}, {"struct": [[NAME, T], …]} or
{"map": [T, T]}. These are types that Parquet gives back as they were.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import Fields

COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
MOST_LEVELS = 16
ITEM = "element"  # as Parquet calls it
SCALARS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in ("ms", "us", "ns")},
    **{f"timestamp[{unit}, UTC]": pa.timestamp(unit, "UTC") for unit in ("ms", "us", "ns")},
}
_NAMES = {kind: name for name, kind in SCALARS.items()}
_DECIMAL = re.compile(r"decimal\(([1-9][0-9]?), ([0-9]{1,2})\)")


@dataclass(frozen=True)
class KeptColumn:
    """A column. name: in the corpus; field: of the records, which is another one where the name was taken."""

    name: str
    field: str
    type: pa.DataType

    def plain(self) -> dict[str, Any]:
        """As manifest.json has it."""
        return {"name": self.name, "field": self.field, "type": plain_type(self.type)}


def kept_schema(columns: Sequence[KeptColumn]) -> list[pa.Field]:
    """Schema fields of the columns. A document whose record has no such field, or a value of another type, has null."""
    return [pa.field(column.name, column.type) for column in columns]


def plain_type(kind: pa.DataType) -> Any:
    """A type as plain data, in the form that Parquet keeps: times of seconds as of milliseconds, instants in UTC,
    dictionaries as what they hold. Raises ValueError for one that there is none for."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):
        return plain_type(pa.timestamp("ms" if kind.unit == "s" else kind.unit, "UTC" if kind.tz else None))
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"list": plain_type(kind.value_type)}
    if pa.types.is_struct(kind) and kind.num_fields:
        return {"struct": [[kind.field(at).name, plain_type(kind.field(at).type)] for at in range(kind.num_fields)]}
    if pa.types.is_map(kind):
        return {"map": [plain_type(kind.key_type), plain_type(kind.item_type)]}
    raise ValueError(f"type {kind} has no column")


def parse_type(plain: Any, level: int = 0) -> pa.DataType:
    """Inverse of `plain_type`. Raises ValueError for anything else."""
    if isinstance(plain, str):
        if found := _DECIMAL.fullmatch(plain):
            precision, scale = map(int, found.groups())
            if scale <= precision <= 76:
                return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
        if plain in SCALARS:
            return SCALARS[plain]
    elif isinstance(plain, dict | list) and level < MOST_LEVELS and isinstance(plain, dict) and len(plain) == 1:
        ((form, inner),) = plain.items()
        if form == "list":
            return pa.list_(pa.field(ITEM, parse_type(inner, level + 1)))
        if form == "struct" and isinstance(inner, list | tuple) and inner and all(map(_is_member, inner)):
            names = [name for name, _ in inner]
            if len(set(names)) == len(names):
                return pa.struct([pa.field(name, parse_type(each, level + 1)) for name, each in inner])
        if form == "map" and isinstance(inner, list | tuple) and len(inner) == 2:
            return pa.map_(*(parse_type(each, level + 1) for each in inner))
    raise ValueError(f"{plain!r:.100} given, a type of a column is allowed: {', '.join(SCALARS)}, decimal(P, S), …")


def _is_member(plain: Any) -> bool:
    return isinstance(plain, list | tuple) and len(plain) == 2 and isinstance(plain[0], str)


def parse_kept_columns(top: Fields, section: str, taken: Sequence[str]) -> tuple[KeptColumn, ...]:
    """The columns that a manifest lists in a section, none without it. taken: names of the other columns. Raises
    FormatError."""
    if section not in top.value:
        return ()
    found: list[KeptColumn] = []
    for entry in top.list(section):
        name, field = entry.text("name"), entry.text("field")
        if not COLUMN_NAME.fullmatch(name) or name in (*taken, *(column.name for column in found)):
            raise FormatError(f"{entry.where}: name is {name!r:.80}, a unique name expected")
        try:
            found.append(KeptColumn(name, field, parse_type(entry.value.get("type"))))
        except ValueError as error:
            raise FormatError(f"{entry.where}: type: {error}") from None
    return tuple(found)
