"""Figures to MLflow: a run of the experiment that MLFLOW_EXPERIMENT_NAME names, where MLFLOW_TRACKING_URI says.

The client is used, not `mlflow.start_run`, which would note the user, the command and the repository of the program.
"""

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "refinery"
BATCH = 1000  # metrics of one request, as the server allows


class MlflowTracker:
    """One run. client: of the server or folder of files."""

    def __init__(self, client: "MlflowClient") -> None:
        self.client = client
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found is not None else client.create_experiment(name)
        self.run_id = client.create_run(experiment, run_name=os.environ.get("MLFLOW_RUN_NAME", "refine")).info.run_id

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """As `Tracker.log`."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value in figures.items()]
        for start in range(0, len(metrics), BATCH):
            self.client.log_batch(self.run_id, metrics=metrics[start : start + BATCH])

    def end(self, is_done: bool) -> None:
        """As `Tracker.end`."""
        self.client.set_terminated(self.run_id, "FINISHED" if is_done else "FAILED")


def open_tracker() -> MlflowTracker:
    """A run where the environment says."""
    from mlflow import MlflowClient

    return MlflowTracker(MlflowClient())
