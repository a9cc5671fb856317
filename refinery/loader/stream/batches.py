"""The type of a batch, for type checkers: at run time it is a dict."""

from typing import NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class TokenBatch(TypedDict):
    """A batch of numpy arrays (docs/loader/batches.md): what was asked for, and of packed rows the columns."""

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
