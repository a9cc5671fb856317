"""Figures to Weights & Biases: WANDB_PROJECT, WANDB_MODE and the others of its variables say where, or not at all.

What its library would note besides (command line, host, repository, packages, output of the terminal) is switched off.
"""

import os
from collections.abc import Mapping
from typing import Any

PROJECT = "refinery"


class WandbTracker:
    """One run, of `wandb.init`."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """As `Tracker.log`."""
        self.run.log(dict(figures), step=step)

    def end(self, is_done: bool) -> None:
        """As `Tracker.end`."""
        self.run.finish(exit_code=0 if is_done else 1)


def open_tracker() -> WandbTracker:
    """A run where the environment says."""
    import wandb

    settings = wandb.Settings(
        console="off",
        host="-",
        disable_code=True,
        disable_git=True,
        disable_job_creation=True,
        save_code=False,
        silent=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    return WandbTracker(wandb.init(project=os.environ.get("WANDB_PROJECT", PROJECT), settings=settings))
