"""Lightning: a data module makes the loaders (once the ranks are known) and keeps the position in checkpoints.

torchrun --nproc-per-node 2 examples/frameworks/with_lightning.py out/demo/corpus --output out/lightning
"""

import os
from argparse import Namespace
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from common import SeenLog, Tiny, arguments, leave, shape_of, summed_loss, vocabulary
from refinery.loader.torch.adapter import TokenLoader, build_dataloader


class CorpusModule(pl.LightningDataModule):
    """loop="epoch": Lightning counts epochs itself. loop="restart": each validation sees the same batches."""

    def __init__(self, args: Namespace) -> None:
        super().__init__()
        self.args = args
        self._loader: TokenLoader | None = None
        self._state: dict[str, Any] | None = None

    def train_dataloader(self) -> TokenLoader:
        self._loader = build_dataloader(
            self.args.corpus, num_workers=self.args.workers, loop="epoch", **shape_of(self.args)
        )
        if self._state is not None:
            self._loader.load_state_dict(self._state)
        return self._loader

    def val_dataloader(self) -> TokenLoader:
        return build_dataloader(self.args.corpus, loop="restart", **(shape_of(self.args) | {"epochs": 1}))

    def state_dict(self) -> dict[str, Any]:
        return {} if self._loader is None else self._loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._state = state_dict or None


class LitTiny(pl.LightningModule):
    def __init__(self, vocab_size: int, args: Namespace) -> None:
        super().__init__()
        self.model, self.args = Tiny(vocab_size), args
        self.validations: list[float] = []

    def training_step(self, batch: dict[str, Any], index: int) -> Any:
        total, count = summed_loss(self.model(batch["input_ids"]), batch["labels"])
        SeenLog(self.args.output, self.global_rank).add(batch, total.item())
        counted = self.trainer.strategy.reduce(count, reduce_op="sum")
        return total * self.trainer.world_size / counted

    def validation_step(self, batch: dict[str, Any], index: int) -> None:
        total, count = summed_loss(self.model(batch["input_ids"]), batch["labels"])
        self.log("val_loss", total / count.clamp(min=1), batch_size=int(count), sync_dist=True)
        self.validations.append(batch["input_ids"].sum().item())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    args = arguments(__doc__).parse_args()
    path = args.output / "last.ckpt"
    devices = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # torchrun's
    trainer = pl.Trainer(
        accelerator="cpu", strategy="ddp", devices=devices, use_distributed_sampler=False,
        max_epochs=args.epochs, max_steps=args.stop_at or -1,
        callbacks=[ModelCheckpoint(args.output, "last", every_n_train_steps=args.stop_at)] if args.stop_at else [],
        default_root_dir=args.output, logger=False, enable_checkpointing=bool(args.stop_at), enable_progress_bar=False,
    )  # fmt: skip
    model = LitTiny(vocabulary(args.corpus), args)
    trainer.fit(model, datamodule=CorpusModule(args), ckpt_path=path if path.exists() else None)
    print("validated batches:", len(model.validations))
    leave()


if __name__ == "__main__":
    main()
