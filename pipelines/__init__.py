"""Runs: `from refinery.pipelines import refine`.

The name is loaded when it is asked for, so that importing a module of this package does not load Beam.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refinery.pipelines.run.api import refine

__all__ = ["refine"]


def __getattr__(name: str) -> Any:
    if name == "refine":
        from refinery.pipelines.run.api import refine

        return refine
    raise AttributeError(f"module 'refinery.pipelines' has no attribute {name!r}")
