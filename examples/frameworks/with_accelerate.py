"""Hugging Face Accelerate: `prepare` returns the loader unchanged, which reads its own rank's rows already.

accelerate launch --num-processes 2 examples/frameworks/with_accelerate.py out/demo/corpus --output out/accelerate
"""

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device

from common import SeenLog, Tiny, arguments, leave, shape_of, summed_loss, vocabulary
from refinery.loader.torch.adapter import build_dataloader


def main() -> None:
    args = arguments(__doc__).parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=not torch.cuda.is_available())
    model = Tiny(vocabulary(args.corpus))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = build_dataloader(args.corpus, num_workers=args.workers, **shape_of(args))
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    accelerator.register_for_checkpointing(loader)  # save_state and load_state include its position
    seen, path = SeenLog(args.output, accelerator.process_index), args.output / "checkpoint"
    if path.exists():
        accelerator.load_state(str(path))
    for step, batch in enumerate(loader, 1):
        batch = send_to_device(batch, accelerator.device, non_blocking=True)
        with accelerator.accumulate(model):  # the last batch of the loop ends an accumulation, too
            total, count = summed_loss(model(batch["input_ids"]), batch["labels"])
            seen.add(batch, total.item())
            counted = accelerator.reduce(count, "sum")
            accelerator.backward(total * accelerator.num_processes / counted)
            optimizer.step()
            optimizer.zero_grad()
        if step == args.stop_at:
            break
    accelerator.save_state(str(path))
    accelerator.end_training()
    leave()


if __name__ == "__main__":
    main()
