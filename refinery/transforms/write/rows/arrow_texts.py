"""New texts in a column of Arrow, which keeps its type: strings and binaries of each kind, dictionaries of them, and
fields of structs."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Kinds without kernels to replace and take values -> what they are meanwhile.
WIDE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
TEXTS = (pa.string(), pa.large_string())
BINARIES = (pa.binary(), pa.large_binary())


def with_texts(array: pa.Array, path: Sequence[str], texts: Mapping[int, str]) -> pa.Array:
    """The array with other texts at some places. path: the names of the fields that lead to them in structs; of two
    fields of one name the last counts, as in a row that is a mapping.

    Raises ValueError where no text can stand: in another type, in a struct that is null, in a dictionary whose indices
    are too small for one value more; and for lone surrogates.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, with_texts(array.storage, path, texts))
    if path:
        return _with_field(array, path, texts)
    if pa.types.is_dictionary(kind):
        return with_texts(array.dictionary_decode(), path, texts).dictionary_encode().cast(kind)
    wide = WIDE.get(kind, kind)
    if wide not in (*TEXTS, *BINARIES):
        raise ValueError(f"its column of type {kind} holds no text")
    places = sorted(texts)
    mask = np.zeros(len(array), np.bool_)
    mask[places] = True
    new = [texts[at] if wide in TEXTS else texts[at].encode() for at in places]
    return pc.replace_with_mask(array.cast(wide), pa.array(mask), pa.array(new, wide)).cast(kind)


def _with_field(array: pa.Array, path: Sequence[str], texts: Mapping[int, str]) -> pa.Array:
    fields = list(array.type) if pa.types.is_struct(array.type) else []
    places = [at for at, field in enumerate(fields) if field.name == path[0]]
    if not places or not all(array[at].is_valid for at in texts):
        raise ValueError(f"it has no field {path[0]!r} for a new text")
    parts = [array.field(at) for at in range(len(fields))]
    parts[places[-1]] = with_texts(parts[places[-1]], path[1:], texts)
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())


def take_rows(array: pa.Array, rows: Sequence[int]) -> pa.Array:
    """Those rows, ascending, of an array of any type."""
    try:
        return array.take(pa.array(rows, pa.int64()))
    except pa.ArrowNotImplementedError:  # of views, which pyarrow 25 can slice and join alone
        numbers = np.asarray(rows, np.int64)
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        return pa.concat_arrays([array.slice(run[0], len(run)) for run in runs if len(run)] or [array.slice(0, 0)])
