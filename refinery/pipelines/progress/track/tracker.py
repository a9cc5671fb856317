"""What a service that follows runs is for us, and which there are."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Protocol

from refinery import DISTRIBUTION


class Tracker(Protocol):
    """One run at a service. Made and used by one thread; each call may raise anything and take any time.

    Where the service is, who pays and what the run is called, its own environment variables and files say.
    """

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """Figures by name ("clean/documents"), of the step of that number, from 0."""

    def end(self, is_done: bool) -> None:
        """The run has ended, well or not. What was logged is sent."""


@dataclass(frozen=True)
class Kind:
    """A service. library: what must be installed. module: of ours, whose `open_tracker` makes a Tracker."""

    library: str
    module: str


_HERE = __name__.rpartition(".")[0]
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "mlflow": Kind("mlflow", f"{_HERE}.mlflow_tracker"),
        "wandb": Kind("wandb", f"{_HERE}.wandb_tracker"),
        "otel": Kind("opentelemetry.exporter.otlp.proto.http", f"{_HERE}.otel_tracker"),
    }
)


def check_kind(name: str) -> Kind:
    """The service of that name. Raises ValueError, one line, where its library is not installed."""
    kind = KINDS[name]
    try:
        is_there = find_spec(kind.library) is not None
    except ModuleNotFoundError:  # of a package above it
        is_there = False
    if not is_there:
        raise ValueError(f"--track {name}: {kind.library} is needed: pip install '{DISTRIBUTION}[track]'")
    return kind


def open_tracker(kind: Kind) -> Tracker:
    """A run at the service. Its library is imported here, for the first time."""
    tracker: Tracker = importlib.import_module(kind.module).open_tracker()
    return tracker
