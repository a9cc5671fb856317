"""Run by torchrun: what Accelerate must not do with a rank's batches, tried on every rank. Prints what each refused."""

import sys

from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader

from refinery.loader.torch.adapter import TokenDataset, build_dataloader

SHAPE = {"sequence_length": 32, "batch_size": 2, "epochs": 1}


def main() -> None:
    for dispatch in (None, False):
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
        loader = build_dataloader(sys.argv[1], **SHAPE)
        assert accelerator.prepare(loader) is loader
        try:
            wrapped = accelerator.prepare(DataLoader(TokenDataset(sys.argv[1], **SHAPE), batch_size=None))
            next(iter(wrapped))
        except RuntimeError as error:
            sys.stdout.write(f"refused by rank {accelerator.process_index}: {error}\n")
        accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
