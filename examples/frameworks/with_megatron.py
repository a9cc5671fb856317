"""Megatron-core: the loader of a data-parallel rank, as Megatron's `get_batch` wants it ("--dataloader-type external").

    torchrun --nproc-per-node 4 examples/frameworks/with_megatron.py out/demo/corpus --output out/megatron

Ranks of one tensor-, context- or pipeline-parallel group get the same rows; context-parallel ranks then take their part
of each (megatron.core.utils.get_batch_on_this_cp_rank).
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state

from common import SeenLog, Tiny, arguments, leave, shape_of, summed_loss, vocabulary
from refinery.loader.torch.adapter import TokenLoader, build_dataloader


def megatron_batches(loader: TokenLoader) -> Iterator[dict[str, Any]]:
    """Batches under Megatron's names. Its labels are shifted, as the loader's are; masked ones are 0 in loss_mask."""
    for batch in loader:
        mask = batch["loss_mask"]
        yield {
            "tokens": batch["input_ids"],
            "labels": batch["labels"].masked_fill(~mask, 0),  # Megatron's cross entropy knows no -100
            "loss_mask": mask.float(),
            "position_ids": batch["position_ids"].long(),
        }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tensor-parallel", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=args.tensor_parallel)
    group = parallel_state.get_data_parallel_group()
    loader = build_dataloader(
        args.corpus, num_workers=args.workers, group=group, loss_mask=True, position_ids=True, **shape_of(args)
    )
    model = Tiny(vocabulary(args.corpus))
    seen, path = SeenLog(args.output, dist.get_rank()), args.output / "loader.pt"
    if path.exists():
        loader.load_state_dict(torch.load(path, weights_only=True))
    for step, batch in enumerate(megatron_batches(loader), 1):
        labels = batch["labels"].masked_fill(batch["loss_mask"] == 0, -100)
        total, _ = summed_loss(model(batch["tokens"]), labels)
        seen.add({"input_ids": batch["tokens"], "labels": labels}, total.item())
        if step == args.stop_at:
            break
    dist.barrier()  # every rank has read the state of the run before
    if dist.get_rank() == 0:
        torch.save(loader.state_dict(), path)
    dist.destroy_process_group()
    leave()


if __name__ == "__main__":
    main()
