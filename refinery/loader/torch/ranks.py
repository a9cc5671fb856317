"""Which part of the data this process reads: its rank among those that read different data."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

# Dimensions of a mesh along which processes need the same data, by the names that PyTorch, Megatron and Accelerate use,
# and those along which each reads data of its own.
SAME_DATA = {"tp", "cp", "pp", "sp", "ep", "etp", "tensor", "context", "pipeline", "sequence", "expert"}
OTHER_DATA = {"dp", "ddp", "fsdp", "hsdp", "data", "data_parallel", "dp_replicate", "dp_shard", "replicate", "shard"}


def default_rank() -> tuple[int, int]:
    """Rank and world size: of torch.distributed if initialized, else RANK and WORLD_SIZE as set by torchrun, else 0, 1.

    Raises ValueError if only one of the variables is set.
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if (rank is None) != (world is None):
        raise ValueError(f"RANK, WORLD_SIZE: {rank}, {world} given, both or neither is allowed")
    return (0, 1) if rank is None or world is None else (int(rank), int(world))


def rank_in(group: Any) -> tuple[int, int]:
    """This process's rank and the size, of a process group or a DeviceMesh over the ranks that read different data.

    A mesh may have several dimensions (such as dp_replicate and dp_shard), counted in its order. Raises ValueError if
    the process is not part of it, and for a mesh with a dimension of tensor, context, pipeline, sequence or expert
    parallelism, along which all need the same data, or of several dimensions of which one has no name of OTHER_DATA.
    """
    if isinstance(group, DeviceMesh):
        names = group.mesh_dim_names or ()
        same = sorted(SAME_DATA.intersection(names))
        if same:
            rest = tuple(name for name in names if name not in SAME_DATA)
            given = f"group: a mesh with the dimension {same[0]!r} given, whose ranks need the same data; "
            raise ValueError(given + (f"group=mesh[{', '.join(map(repr, rest))}] is allowed" if rest else
                                      "rank=0, world_size=1 gives all of them the same"))  # fmt: skip
        _check_dimensions(names, group.mesh.ndim)
        place = group.get_coordinate()
        if place is None:
            raise ValueError(
                f"group: the mesh {names or tuple(group.mesh.shape)} given, which does not include this process"
            )
        rank = 0
        for i, size in zip(place, group.mesh.shape, strict=True):
            rank = rank * size + i
        return rank, group.size()
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("group: the group given does not include this process")
    return rank, dist.get_world_size(group)


def _check_dimensions(names: Sequence[str], count: int) -> None:
    """Raise ValueError for a mesh of several dimensions unless ranks read different data along each of them."""
    unknown = [name for name in names if name not in OTHER_DATA]
    if count == 1 or (names and not unknown):
        return
    what = f"with the dimension {unknown[0]!r}" if unknown else f"of {count} dimensions without names"
    known = [name for name in names if name in OTHER_DATA] or ["dp"]
    how = "" if names else "init_device_mesh(..., mesh_dim_names=...) names them, and "
    raise ValueError(
        f"group: a mesh {what} given, along which ranks may need the same data; {how}only the dimensions along which "
        f"each reads other data are allowed, such as group=mesh[{', '.join(map(repr, known))}]. Several are passed "
        f"together if their names are among {', '.join(sorted(OTHER_DATA))}; another one alone, or flattened"
    )


def warn_of_groups() -> None:
    """Warn if there are process groups of several, but not all ranks: probably some of them need the same data."""
    if not (dist.is_available() and dist.is_initialized()):
        return
    world = dist.get_world_size()
    groups = dist.distributed_c10d._world.pg_group_ranks.values()
    sizes = sorted({len(ranks) for ranks in groups if 1 < len(ranks) < world})
    if sizes:
        warnings.warn(
            f"each of the {world} ranks gets different data, but there are process groups of {sizes} ranks. If some "
            "are tensor-, context- or pipeline-parallel, their ranks need the same data: pass group=, the group "
            "or the dimensions of the DeviceMesh for data parallelism (such as group=mesh['dp'], or Megatron's "
            "parallel_state.get_data_parallel_group()). Otherwise pass group=torch.distributed.group.WORLD",
            stacklevel=4,
        )
