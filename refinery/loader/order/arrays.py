"""Types of arrays and batches that the modules of the loader share."""

from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
Batch = dict[str, Any]  # array name -> array; "max_seqlen" is an int


class TokenBatch(TypedDict):
    """For type checkers, a batch of numpy arrays (docs/loader/batches.md): those that were asked for, and the columns
    of packed rows. At run time it is a dict."""

    input_ids: I64
    labels: I64
    loss_mask: NotRequired[npt.NDArray[np.bool_]]
    position_ids: NotRequired[I32]
    doc_ids: NotRequired[I32]
    cu_seqlens: NotRequired[I32]
    max_seqlen: NotRequired[int]
    domain_ids: NotRequired[I32]
    sample_ids: NotRequired[I64]
    chunk_kind: NotRequired[npt.NDArray[np.int8]]
    nesting_depth: NotRequired[I32]
    chunk_id: NotRequired[I32]
    char_start: NotRequired[I32]
    char_end: NotRequired[I32]


def distinct(values: I64) -> I64:
    """The different values, ascending. np.unique would import numpy.ma, which the first batch would wait for."""
    ordered = np.sort(values)
    found: I64 = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found
