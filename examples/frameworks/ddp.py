"""Plain data parallelism: DistributedDataParallel, started by torchrun.

torchrun --nproc-per-node 2 examples/frameworks/ddp.py out/demo/corpus --output out/ddp --stop-at 5
torchrun --nproc-per-node 2 examples/frameworks/ddp.py out/demo/corpus --output out/ddp        # resumes
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from common import SeenLog, Tiny, arguments, leave, shape_of, summed_loss, vocabulary
from refinery.loader.torch.adapter import build_dataloader


def main() -> None:
    args = arguments(__doc__).parse_args()
    dist.init_process_group("gloo")  # "nccl" on GPUs
    model = DistributedDataParallel(Tiny(vocabulary(args.corpus)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = build_dataloader(args.corpus, num_workers=args.workers, **shape_of(args))
    seen, path, step = SeenLog(args.output, dist.get_rank()), args.output / "checkpoint.pt", 0
    if path.exists():
        checkpoint = torch.load(path, weights_only=True)
        model.load_state_dict(checkpoint["model"])
        loader.load_state_dict(checkpoint["loader"])  # the same on every rank
        step = checkpoint["step"]
    for batch in loader:
        total, count = summed_loss(model(batch["input_ids"]), batch["labels"])
        seen.add(batch, total.item())
        dist.all_reduce(count)  # the mean is over the labels of all ranks
        optimizer.zero_grad()
        (total * dist.get_world_size() / count).backward()
        optimizer.step()
        step += 1
        if step == args.stop_at:
            break
    if dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "loader": loader.state_dict(), "step": step}, path)
    dist.destroy_process_group()
    leave()


if __name__ == "__main__":
    main()
