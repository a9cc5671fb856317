"""Runs, and tools over what they publish: `from refinery.pipelines import dry_run, refine`.

Names are imported on first use, so a command does not load Beam before it needs it.
"""

from typing import TYPE_CHECKING

from refinery.offers import offers

if TYPE_CHECKING:
    from refinery.pipelines.run.api import dry_run as dry_run
    from refinery.pipelines.run.api import refine as refine

__getattr__, __dir__ = offers(__name__, __file__)
