"""Which dimensions of a mesh may be passed whole: those along which each rank is known to read other data."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

from refinery.loader.torch.ranks import rank_in  # noqa: E402


@contextmanager
def one_of(world: int, rank: int) -> Iterator[None]:
    """torch.distributed as this rank sees it, without the others."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    try:
        yield
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("names", [("dp", "fsdp"), ("dp_replicate", "dp_shard"), ("hsdp", "ddp")])
def test_dimensions_of_data_parallelism_together(names: tuple[str, str]) -> None:
    with one_of(6, 4):
        assert rank_in(init_device_mesh("cpu", (2, 3), mesh_dim_names=names)) == (4, 6)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("dp", "model"), r"dimension 'model' given, .* such as group=mesh\['dp'\]"),
        (("x", "fsdp"), r"dimension 'x' given, .* such as group=mesh\['fsdp'\]"),
        (("x", "y"), r"dimension 'x' given, .* such as group=mesh\['dp'\]"),
        (None, r"of 2 dimensions without names given, .*mesh_dim_names=.* such as group=mesh\['dp'\]"),
    ],
)
def test_a_mesh_with_another_dimension_is_refused(names: tuple[str, str] | None, message: str) -> None:
    with one_of(6, 4), pytest.raises(ValueError, match=message):
        rank_in(init_device_mesh("cpu", (2, 3), mesh_dim_names=names))


@pytest.mark.parametrize("names", [("batch",), None])
def test_one_dimension_may_have_any_name(names: tuple[str, ...] | None) -> None:
    with one_of(6, 4):
        assert rank_in(init_device_mesh("cpu", (6,), mesh_dim_names=names)) == (4, 6)
