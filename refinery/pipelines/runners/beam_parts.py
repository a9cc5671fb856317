"""Beam's connectors to clouds and to MongoDB, imported on their first use.

Beam imports them with everything else, and with them the clients of Google's services: two fifths of all that a run
imports. Only Dataflow needs them, and perhaps a stage of the user's own. Beam takes them for extras that may be
missing, so a run on this machine imports it as if they were. Each can be imported later as any other module; names that
Beam itself would have of them are found when something asks for them.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

# Missing while Beam is imported.
LATER = (
    "apache_beam.io.gcp.bigquery",
    "apache_beam.io.gcp.gcsfilesystem",
    "apitools.base.py.exceptions",
    "google.cloud.dataflow",
)
MONGO = "apache_beam.io.mongodbio"  # Beam insists on this one, and is content with an empty module


def import_without_clouds() -> None:
    """Import Beam, and leave them for later. Does nothing where Beam is imported already."""
    if "apache_beam" in sys.modules:
        return
    for name in LATER:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's own sign for a module that is missing
    sys.modules[MONGO] = ModuleType(MONGO)
    try:
        import apache_beam.internal.metrics.metric as metric
        import apache_beam.io as io
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.runners.dataflow import dataflow_runner
        from apache_beam.utils import retry
    finally:
        for name in (*LATER, MONGO):
            del sys.modules[name]
    _find_names(io)
    _find_storage(FileSystems)
    metric.HttpError = retry.HttpError = _Later("apitools.base.py.exceptions", "HttpError")
    retry.GoogleAPICallError = _Later("google.api_core.exceptions", "GoogleAPICallError")
    dataflow_runner.dataflow_api = _Dataflow()


def _find_names(io: Any) -> None:
    """Let `apache_beam.io` have the names of all connectors from when the first of them is asked for."""

    def find(name: str) -> Any:
        if not name.startswith("__") and vars(io).pop("__getattr__", None):
            importlib.reload(io)  # all that it does is take names from other modules
        try:
            return vars(io)[name]
        except KeyError:
            raise AttributeError(f"module {io.__name__!r} has no attribute {name!r}") from None

    io.__getattr__ = find


def _find_storage(files: Any) -> None:
    """Let Beam know Google's storage from when it is first asked for a place there."""
    get_filesystem = files.get_filesystem

    def find(path: str) -> Any:
        if path.startswith("gs:"):
            importlib.import_module("apache_beam.io.gcp.gcsfilesystem")  # it adds itself to those that Beam knows
        return get_filesystem(path)

    files.get_filesystem = staticmethod(find)


class _Later(type):
    """A class that stands for one of a module where Beam asks whether an error is of it: not before the module is
    there."""

    def __new__(cls, module: str, name: str) -> "_Later":
        return super().__new__(cls, name, (), {"module": module})

    def __init__(cls, module: str, name: str) -> None:
        super().__init__(name, (), {})

    def __instancecheck__(cls, error: object) -> bool:
        module = sys.modules.get(vars(cls)["module"])
        return module is not None and isinstance(error, getattr(module, cls.__name__))


class _Dataflow:
    """Stands for the module google.cloud.dataflow."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("google.cloud.dataflow"), name)
