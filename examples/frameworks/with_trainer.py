"""The Trainer of transformers: a class of one line, and a loader with unshifted labels, one loop per epoch.

torchrun --nproc-per-node 2 examples/frameworks/with_trainer.py out/demo/corpus --output out/trainer
"""

from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from common import SeenLog, arguments, leave, shape_of, vocabulary
from refinery.loader.torch.adapter import build_dataloader
from refinery.loader.torch.trainer import CorpusLoaders


class CorpusTrainer(CorpusLoaders, Trainer):
    """A Trainer that takes the loader as train_dataset, and keeps its position in checkpoints."""

    seen: SeenLog

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **known: Any) -> Any:
        """The Trainer's loss, with a log, which only this example needs."""
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **known)
        if model.training:
            self.seen.add(inputs, loss.item())
        return (loss, outputs) if return_outputs else loss


class StopAt(TrainerCallback):
    """Saves a checkpoint after a step and stops."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        if state.global_step == self.step:
            control.should_save = control.should_training_stop = True


def tiny_llama(vocab_size: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=vocab_size, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                         num_attention_heads=2, max_position_embeddings=64)  # fmt: skip
    return LlamaForCausalLM(config)


def main() -> None:
    args = arguments(__doc__).parse_args()
    settings = TrainingArguments(
        str(args.output), num_train_epochs=args.epochs, per_device_train_batch_size=args.batch_size,
        eval_strategy="epoch", save_strategy="epoch", gradient_accumulation_steps=2, report_to=[], use_cpu=True,
    )  # fmt: skip
    shape = shape_of(args) | {"labels": "unshifted"}
    train = build_dataloader(args.corpus, num_workers=args.workers, loop="epoch", **shape)
    held_out = build_dataloader(args.corpus, loop="restart", **(shape | {"epochs": 1}))
    trainer = CorpusTrainer(tiny_llama(vocabulary(args.corpus)), settings, train_dataset=train, eval_dataset=held_out)
    trainer.seen = SeenLog(args.output, settings.process_index)
    if args.stop_at:
        trainer.add_callback(StopAt(args.stop_at))
    trainer.train(resume_from_checkpoint=get_last_checkpoint(args.output) if Path(args.output).exists() else None)
    print("evaluations:", [line["eval_loss"] for line in trainer.state.log_history if "eval_loss" in line])
    trainer.accelerator.end_training()
    leave()


if __name__ == "__main__":
    main()
