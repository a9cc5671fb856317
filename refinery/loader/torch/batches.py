"""The type of a batch of tensors, for type checkers: at run time it is a dict."""

from typing import NotRequired, TypedDict

from torch import Tensor


class TensorBatch(TypedDict):
    """As refinery.loader.order.arrays.TokenBatch, with a tensor for each array."""

    input_ids: Tensor
    labels: Tensor
    loss_mask: NotRequired[Tensor]
    position_ids: NotRequired[Tensor]
    doc_ids: NotRequired[Tensor]
    cu_seqlens: NotRequired[Tensor]
    max_seqlen: NotRequired[int]
    domain_ids: NotRequired[Tensor]
    sample_ids: NotRequired[Tensor]
    chunk_kind: NotRequired[Tensor]
    nesting_depth: NotRequired[Tensor]
    chunk_id: NotRequired[Tensor]
    char_start: NotRequired[Tensor]
    char_end: NotRequired[Tensor]
