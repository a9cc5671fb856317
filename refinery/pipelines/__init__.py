"""Runs: `from refinery.pipelines import dry_run, refine`.

The names are loaded when they are asked for, so that importing a module of this package does not load Beam.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refinery.pipelines.run.api import dry_run, refine

__all__ = ["dry_run", "refine"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from refinery.pipelines.run import api

        return getattr(api, name)
    raise AttributeError(f"module 'refinery.pipelines' has no attribute {name!r}")
