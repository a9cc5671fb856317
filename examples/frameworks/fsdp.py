"""Sharded data parallelism (FSDP2), alone or with tensor parallelism, whose ranks get the same data.

    torchrun --nproc-per-node 2 examples/frameworks/fsdp.py out/demo/corpus --output out/fsdp
    torchrun --nproc-per-node 4 examples/frameworks/fsdp.py out/demo/corpus --output out/2d --tensor-parallel 2

Context and pipeline parallelism are one more dimension of the mesh: `group` is always mesh["dp"], or all of the
dimensions of data parallelism, mesh["dp_replicate", "dp_shard"].
"""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from common import SeenLog, Tiny, arguments, leave, shape_of, summed_loss, vocabulary
from refinery.loader.torch.adapter import build_dataloader


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tensor-parallel", type=int, default=1)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = dist.get_world_size() // args.tensor_parallel
    mesh = init_device_mesh("cpu", (data, args.tensor_parallel), mesh_dim_names=("dp", "tp"))
    model = Tiny(vocabulary(args.corpus))
    if args.tensor_parallel > 1:
        parallelize_module(model, mesh["tp"], {"out": ColwiseParallel(output_layouts=Replicate())})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = build_dataloader(args.corpus, num_workers=args.workers, group=mesh["dp"], **shape_of(args))
    seen, path = SeenLog(args.output, dist.get_rank()), args.output / "checkpoint"
    if path.exists():
        state = {"model": get_model_state_dict(model), "loader": loader}
        dcp.load(state, checkpoint_id=path)  # the loader has state_dict and load_state_dict
        set_model_state_dict(model, state["model"])
    for step, batch in enumerate(loader, 1):
        total, count = summed_loss(model(batch["input_ids"]), batch["labels"])
        seen.add(batch, total.item())
        dist.all_reduce(count, group=mesh["dp"].get_group())
        optimizer.zero_grad()
        (total * data / count).backward()
        optimizer.step()
        if step == args.stop_at:
            break
    dcp.save({"model": get_model_state_dict(model), "loader": loader}, checkpoint_id=path)
    dist.destroy_process_group()
    leave()


if __name__ == "__main__":
    main()
