"""Which rank of how many this process is."""

import os

import torch.distributed


def default_rank() -> tuple[int, int]:
    """Rank and world size: of torch.distributed if initialized, else RANK and WORLD_SIZE as set by torchrun, else 0, 1.

    Raises ValueError if only one of the variables is set.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if (rank is None) != (world is None):
        raise ValueError(f"RANK, WORLD_SIZE: {rank}, {world} given, both or neither is allowed")
    return (0, 1) if rank is None or world is None else (int(rank), int(world))
