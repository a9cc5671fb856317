"""Loaders of this package in the Trainer of transformers, which would otherwise divide and shift their batches again.

class CorpusTrainer(CorpusLoaders, Trainer): ...

loader = build_dataloader(prefix, batch_size=8, loop="epoch", labels="unshifted")   # after TrainingArguments
CorpusTrainer(model, args, train_dataset=loader).train(resume_from_checkpoint=True)
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from refinery.loader.torch.token_loader import TokenLoader


class CorpusLoaders:
    """For a class derived from it and from Trainer: `train_dataset` and `eval_dataset` may be TokenLoaders.

    Each rank's loader is used as it is, so batch_size, number of workers and rank are its own, not those of
    TrainingArguments. Its state is part of every checkpoint (in trainer_state.json) and is loaded when training
    resumes, so batches that were used are not read again. Make loaders after TrainingArguments, which initialize
    torch.distributed.

    Raises ValueError for what would go wrong unnoticed: shifted labels, which the models shift again (unless
    compute_loss_func is given); a loader that ends before num_train_epochs, or whose loop is not an epoch; evaluation
    whose second loop would be empty; dataloader_num_workers and dataloader_drop_last, which the loader does not see.
    """

    def get_train_dataloader(self: Any) -> Any:
        """The training loader, in a DataLoader that the Trainer can fast-forward."""
        loader = self.train_dataset
        if not isinstance(loader, TokenLoader):
            return super().get_train_dataloader()  # type: ignore[misc]
        self._check_loader(loader)
        if self.args.max_steps <= 0:
            _check_epochs(loader, math.ceil(self.args.num_train_epochs))
        if not any(isinstance(found, LoaderPosition) for found in self.callback_handler.callbacks):
            self.add_callback(LoaderPosition())
        return _FastForwarded(loader)

    def get_eval_dataloader(self: Any, eval_dataset: Any = None) -> Any:
        """The evaluation loader: `eval_dataset`, one of those in self.eval_dataset by its name, or that."""
        loader = self.eval_dataset if eval_dataset is None else eval_dataset
        loader = self.eval_dataset[loader] if isinstance(loader, str) else loader
        if not isinstance(loader, TokenLoader):
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        self._check_loader(loader)
        if loader.loop != "restart":
            raise ValueError(
                f"eval_dataset: a loader with loop={loader.loop!r} given, whose second evaluation would see other "
                "batches or none; build_dataloader(..., loop='restart') is allowed"
            )
        return loader

    def num_examples(self: Any, dataloader: Any) -> int:
        """Rows of a loop of all ranks, the empty ones at an epoch's end included."""
        inner = dataloader.dataset.loader if isinstance(dataloader, _FastForwarded) else dataloader
        if not isinstance(inner, TokenLoader):
            return super().num_examples(dataloader)  # type: ignore[misc,no-any-return]
        options = inner.token_dataset.options
        return len(inner) * inner.token_dataset.stream.batch_size * int(options["world_size"])

    def prediction_step(self: Any, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        """As the Trainer's, but the loss is the mean over all ranks' labels of the step: one rank's rows may be all
        padding, whose mean is not a number."""
        loss, logits, labels = super().prediction_step(model, inputs, *args, **options)  # type: ignore[misc]
        if loss is not None and self.accelerator.num_processes > 1 and "labels" in inputs:
            count = (inputs["labels"][..., 1:] != -100).sum().to(loss.device)
            summed = torch.stack([torch.where(count > 0, loss * count, 0.0).double(), count.double()])
            total, counted = self.accelerator.reduce(summed, "sum")
            loss = (total / counted).to(loss.dtype)
        return loss, logits, labels

    def _check_loader(self: Any, loader: TokenLoader) -> None:
        if loader.token_dataset.stream.labels != "unshifted" and self.compute_loss_func is None:
            raise ValueError(
                "labels: shifted ones given, which the models of transformers shift again, so they would learn to "
                "predict the token after the next; build_dataloader(..., labels='unshifted') is allowed"
            )
        for name in ("dataloader_num_workers", "dataloader_drop_last"):
            if getattr(self.args, name):
                raise ValueError(
                    f"{name}: {getattr(self.args, name)} given, the loader decides that: "
                    "build_dataloader(..., num_workers=...), and no batch is dropped"
                )


def _check_epochs(loader: TokenLoader, epochs: int) -> None:
    """Raise ValueError unless each loop is an epoch, and there are so many."""
    most = loader.token_dataset.options.get("epochs")
    if loader.loop == "restart" or (loader.loop == "continue" and epochs > 1):
        raise ValueError(
            f"train_dataset: a loader with loop={loader.loop!r} given with num_train_epochs={epochs}; "
            "build_dataloader(..., loop='epoch') is allowed, or max_steps"
        )
    if loader.loop == "epoch" and most is not None and most < epochs:
        raise ValueError(f"num_train_epochs: {epochs} given, the loader ends after epochs={most}")


class _Upcoming(IterableDataset[Any]):
    """The batches of a loader, after as many placeholders as a Trainer that resumes passes over."""

    def __init__(self, loader: TokenLoader) -> None:
        self.loader = loader
        self.placeholders = 0

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        count, self.placeholders = self.placeholders, 0
        for _ in range(count):
            yield None
        yield from self.loader


class _FastForwarded(DataLoader[Any]):
    """A loader for the Trainer: `skip_first_batches` makes another one of its data set, and drops what comes first."""

    _is_accelerate_prepared = True

    def __init__(self, loader: TokenLoader) -> None:
        super().__init__(_Upcoming(loader), batch_size=None, collate_fn=_unchanged)

    def __len__(self) -> int:
        return len(self.dataset)


class LoaderPosition(TrainerCallback, ExportableState):
    """Puts the loader's state into checkpoints, and loads it when training resumes."""

    def __init__(self) -> None:
        self._upcoming: _Upcoming | None = None

    def state(self) -> dict[str, Any]:
        """What trainer_state.json keeps."""
        found = {} if self._upcoming is None else {"position": self._upcoming.loader.state_dict()}
        return {"args": {}, "attributes": found}

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        upcoming = getattr(known.get("train_dataloader"), "dataset", None)
        if not isinstance(upcoming, _Upcoming):
            return
        self._upcoming = upcoming
        if not state.global_step:
            return
        saved = state.stateful_callbacks.get(type(self).__name__, {}).get("attributes", {}).get("position")
        if saved is None:
            raise ValueError(
                "resume_from_checkpoint: one without the loader's state given, so what it has seen is unknown; resume "
                "from a checkpoint that a CorpusLoaders trainer saved"
            )
        upcoming.loader.load_state_dict(saved)
        steps = args.gradient_accumulation_steps
        try:
            updates = max(-(-len(upcoming) // steps), 1)
        except TypeError:
            updates = state.max_steps
        upcoming.placeholders = 0 if args.ignore_data_skip else state.global_step % updates * steps


def _unchanged(batch: Any) -> Any:
    return batch
