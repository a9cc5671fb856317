"""torchdata's StatefulDataLoader over the data set, for code that is written for it; build_dataloader does as much.

    torchrun --nproc-per-node 2 examples/frameworks/with_torchdata.py out/demo/corpus --output out/torchdata --workers 2

Each rank saves the state of its own loader, and resumes with the same number of workers.
"""

import torch
import torch.distributed as dist
from torchdata.stateful_dataloader import StatefulDataLoader

from common import SeenLog, Tiny, arguments, leave, shape_of, summed_loss, vocabulary
from refinery.loader.torch.adapter import TokenDataset


def main() -> None:
    args = arguments(__doc__).parse_args()
    dist.init_process_group("gloo")
    model = Tiny(vocabulary(args.corpus))
    dataset = TokenDataset(args.corpus, **shape_of(args))
    loader = StatefulDataLoader(dataset, batch_size=None, num_workers=args.workers)
    seen, path = SeenLog(args.output, dist.get_rank()), args.output / f"loader-{dist.get_rank()}.pt"
    if path.exists():
        loader.load_state_dict(torch.load(path, weights_only=False))
    for step, batch in enumerate(loader, 1):
        total, _ = summed_loss(model(batch["input_ids"]), batch["labels"])
        seen.add(batch, total.item())
        if step == args.stop_at:
            torch.save(loader.state_dict(), path)
            break
    dist.destroy_process_group()
    leave()


if __name__ == "__main__":
    main()
