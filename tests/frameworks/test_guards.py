"""Ranks in groups and meshes, and what would lose, repeat or shift tokens unnoticed: refused, with what to write."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.runs import B, S, environment, finish

torch = pytest.importorskip("torch", reason="the extra [frameworks] is not installed")
pytest.importorskip("accelerate", reason="the extra [frameworks] is not installed")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

from refinery.loader.torch.adapter import TokenDataset, build_dataloader  # noqa: E402
from refinery.loader.torch.ranks import rank_in, warn_of_groups  # noqa: E402

SHAPE: dict[str, Any] = {"sequence_length": S, "batch_size": B}


@contextmanager
def one_of(world: int, rank: int) -> Iterator[None]:
    """torch.distributed as this rank sees it, without the others."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    try:
        yield
    finally:
        dist.destroy_process_group()


# --- ranks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 5, 11, 23])
def test_ranks_in_a_mesh(rank: int) -> None:
    """Replicas, shards, context, pipeline and tensor parallelism: 2 x 3 ranks read different data."""
    with one_of(24, rank):
        names = ("dp_replicate", "pp", "dp_shard", "tp")
        mesh = init_device_mesh("cpu", (2, 2, 3, 2), mesh_dim_names=names)
        replica, shard = rank // 12, rank % 6 // 2
        assert rank_in(mesh["dp_replicate", "dp_shard"]) == (replica * 3 + shard, 6)
        assert rank_in(mesh["dp_shard"]) == (shard, 3)
        assert rank_in(mesh["dp_shard"].get_group()) == (shard, 3)
        assert rank_in(dist.group.WORLD) == (rank, 24)
        with pytest.raises(ValueError, match=r"dimension 'pp' given.*group=mesh\['dp_replicate', 'dp_shard'\]"):
            rank_in(mesh)
        with pytest.raises(ValueError, match="rank=0, world_size=1"):
            rank_in(mesh["tp"])


def test_a_group_without_this_process() -> None:
    with one_of(4, 3):
        other = dist.new_group([0, 1])
        with pytest.raises(ValueError, match="does not include this process"):
            rank_in(other)


def test_a_warning_if_some_ranks_form_a_group(corpus: Path) -> None:
    with one_of(4, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_groups()
            everyone = build_dataloader(str(corpus), **SHAPE).token_dataset.options
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        with pytest.warns(UserWarning, match=r"4 ranks gets different data, but there are process groups of \[2\]"):
            alone = TokenDataset(str(corpus), **SHAPE).options
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            grouped = build_dataloader(str(corpus), group=mesh["dp"], **SHAPE).token_dataset.options
            meant = build_dataloader(str(corpus), group=dist.group.WORLD, **SHAPE).token_dataset.options
    found = [(options["rank"], options["world_size"]) for options in (everyone, alone, grouped, meant)]
    assert found == [(1, 4), (1, 4), (0, 2), (1, 4)]


# --- Accelerate ------------------------------------------------------------------------------------------------------


def test_accelerate_does_not_divide_batches_again(corpus: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, str(Path(__file__).parent / "misuse.py"), str(corpus)]
    text = finish(subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    for rank in range(2):
        assert text.count(f"refused by rank {rank}: TokenDataset: these are one rank's batches") == 2
    assert "write accelerator.prepare(loader) with loader = refinery.loader.torch.adapter.build_dataloader" in text


# --- the Trainer of transformers -------------------------------------------------------------------------------------


@pytest.fixture
def trainer(corpus: Path, tmp_path: Path) -> Callable[..., Any]:
    """A Trainer of the given class, loader and settings."""
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    from refinery.loader.torch.trainer import CorpusLoaders

    class CorpusTrainer(CorpusLoaders, Trainer):
        pass

    small = LlamaConfig(vocab_size=2000, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)

    def made(of: dict[str, Any], plain: bool = False, evaluated: dict[str, Any] | None = None, **settings: Any) -> Any:
        data = TokenDataset(str(corpus), **SHAPE) if plain else build_dataloader(str(corpus), **SHAPE, **of)
        held_out = None if evaluated is None else build_dataloader(str(corpus), **SHAPE, **evaluated)
        args = TrainingArguments(str(tmp_path), use_cpu=True, report_to=[], **settings)
        kind = Trainer if plain else CorpusTrainer
        return kind(LlamaForCausalLM(small), args, train_dataset=data, eval_dataset=held_out)

    return made


RIGHT: dict[str, Any] = {"loop": "epoch", "labels": "unshifted"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    "of, settings, message",
    [
        ({"loop": "epoch"}, {}, r"labels: shifted ones given.*labels='unshifted'"),
        (RIGHT | {"loop": "continue", "epochs": 3}, {}, r"loop='continue' given with num_train_epochs=3.*loop='epoch'"),
        (RIGHT | {"loop": "restart"}, {}, r"loop='restart' given.*loop='epoch'"),
        (RIGHT | {"epochs": 2}, {}, "num_train_epochs: 3 given, the loader ends after epochs=2"),
        (RIGHT, {"dataloader_num_workers": 2}, r"dataloader_num_workers: 2 given.*num_workers="),
        (RIGHT, {"dataloader_drop_last": True}, "dataloader_drop_last: True given"),
    ],
)
def test_the_trainer_refuses(trainer: Any, of: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trainer(of, **settings).train()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_evaluation_that_would_be_empty_the_second_time(trainer: Any) -> None:
    with pytest.raises(ValueError, match=r"eval_dataset: a loader with loop='continue' given.*loop='restart'"):
        trainer(RIGHT, evaluated=RIGHT | {"loop": "continue", "epochs": 1}).evaluate()
    held_out = trainer(RIGHT, evaluated=RIGHT | {"loop": "restart"})
    assert held_out.evaluate()["eval_loss"] == held_out.evaluate()["eval_loss"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_plain_trainer_with_the_data_set(trainer: Any) -> None:
    with pytest.raises(RuntimeError, match=r"an item is a batch already.*class CorpusTrainer\("):
        trainer({}, plain=True, max_steps=2).train()
