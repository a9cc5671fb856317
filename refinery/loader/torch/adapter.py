"""The stream for PyTorch: data set, data loader, and prefetching to the device. Only this folder imports torch.

    loader = build_dataloader("gs://bucket/corpus", sequence_length=4096, batch_size=8, seed=1)
    for batch in (steps := device_prefetch(loader, "cuda")):
        ...                                   # batch: dict of tensors on the device
        torch.save({"model": ..., "loader": steps.state_dict()}, path)

num_workers=0 is fastest: the stream prefetches on a thread, and batches are not sent between processes. With N worker
processes each makes every N-th step of its rank, and batches arrive in the same order as without workers. The state is
that of the stream: it can be loaded with any number of workers and ranks, or into a plain TokenStream.
"""

from collections.abc import Mapping
from typing import Any, Unpack

import torch

from refinery.loader.stream.options import check_dataloader
from refinery.loader.torch.batches import TensorBatch
from refinery.loader.torch.dataset import STATE, TokenDataset, as_tensors
from refinery.loader.torch.device import DevicePrefetcher, device_prefetch
from refinery.loader.torch.options import DatasetOptions
from refinery.loader.torch.ranks import default_rank
from refinery.loader.torch.token_loader import TokenLoader

__all__ = [
    "STATE",
    "DevicePrefetcher",
    "TensorBatch",
    "TokenDataset",
    "TokenLoader",
    "as_tensors",
    "build_dataloader",
    "default_rank",
    "device_prefetch",
]


def build_dataloader(
    prefix: str,
    *,
    num_workers: int = 0,
    pin_memory: bool | None = None,
    dataloader: Mapping[str, Any] | None = None,
    **options: Unpack[DatasetOptions],
) -> TokenLoader:
    """A data loader over the corpus at `prefix`. options: those of TokenStream, and `packed`, `group` of TokenDataset.

    pin_memory: by default if CUDA is available. dataloader: more arguments of torch's DataLoader (prefetch_factor,
    multiprocessing_context, timeout, ...).
    """
    check_dataloader(dataloader or {})
    pin = torch.cuda.is_available() if pin_memory is None else pin_memory
    return TokenLoader(TokenDataset(prefix, **options), num_workers=num_workers, pin_memory=pin, **(dataloader or {}))
