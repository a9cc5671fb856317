"""What Beam imports and a run on this machine does not need, imported on its first use.

Most of it are connectors to clouds and to MongoDB, and with them the clients of Google's services: half of Beam's
imports. Only Dataflow needs them, and perhaps a stage of the user's own. Beam takes them for extras that may be
missing, so a run on this machine imports it as if they were. Other modules have a stand-in where Beam has them. Each
can be imported later as any other, and names that Beam itself would have are found when something asks for them.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

# Missing while Beam is imported.
MISSING = (
    "apache_beam.io.gcp.bigquery",
    "apache_beam.io.gcp.gcsfilesystem",
    "apitools.base.py.exceptions",
)
MONGO = "apache_beam.io.mongodbio"  # Beam insists on this one, and is content with an empty module
STAND_INS = ("google.cloud.dataflow", "httplib2")  # modules of which functions of Beam take names when they run
TYPES = ("beartype", "beartype.door", "beartype.roar")  # for type hints that Beam cannot compare itself


def import_beam() -> None:
    """Import Beam, and leave the rest for later. Does nothing where Beam is imported already."""
    if "apache_beam" in sys.modules:
        return
    types = ModuleType("beartype")
    vars(types).update(is_subhint=_is_subhint, BeartypeDoorException=LookupError)  # until the first is called
    put: dict[str, Any] = dict.fromkeys(MISSING)  # None is Python's own sign for a module that is missing
    put |= {name: _Later(name) for name in STAND_INS} | dict.fromkeys(TYPES, types) | {MONGO: ModuleType(MONGO)}
    put = {name: module for name, module in put.items() if name not in sys.modules}
    sys.modules.update(put)
    try:
        import apache_beam.io as io
        from apache_beam.internal.metrics import metric
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.utils import retry
    finally:
        for name in put:
            del sys.modules[name]
    _find_names(io)
    _find_storage(FileSystems)
    metric.HttpError = retry.HttpError = _LaterError("apitools.base.py.exceptions", "HttpError")
    retry.GoogleAPICallError = _LaterError("google.api_core.exceptions", "GoogleAPICallError")


class _Later(ModuleType):
    """Stands for the module of that name."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


class _LaterError(type):
    """A class that stands for one of a module where Beam asks whether an error is of it: not before the module is
    there."""

    def __new__(cls, module: str, name: str) -> "_LaterError":
        return super().__new__(cls, name, (), {"module": module})

    def __init__(cls, module: str, name: str) -> None:
        super().__init__(name, (), {})

    def __instancecheck__(cls, error: object) -> bool:
        module = sys.modules.get(vars(cls)["module"])
        return module is not None and isinstance(error, getattr(module, cls.__name__))


def _is_subhint(sub: object, base: object) -> bool:
    """beartype.door.is_subhint, which takes its own place."""
    from apache_beam.typehints import typehints
    from beartype.door import is_subhint
    from beartype.roar import BeartypeDoorException

    typehints.is_subhint, typehints.BeartypeDoorException = is_subhint, BeartypeDoorException
    found: bool = is_subhint(sub, base)
    return found


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
