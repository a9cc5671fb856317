"""Refinery: raw crawl in, training shards out.

`refinery.loader` is for training nodes, `refinery.transforms` has the stages of the funnel, `refinery.pipelines` the
runs. One-step runs are functions here: `refinery.dedup("in/*.jsonl", output="out", near=0.8)`. Names are imported on
first use, so none of these loads what only the others need.
"""

from typing import TYPE_CHECKING

from refinery.offers import offers

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.api import dedup as dedup
    from refinery.pipelines.run.steps.api import detect_language as detect_language
    from refinery.pipelines.run.steps.api import extract as extract
    from refinery.pipelines.run.steps.api import filter as filter
    from refinery.pipelines.run.steps.api import redact as redact

__getattr__, __dir__ = offers(__name__, __file__)

# What pip knows this project as; the import name is `refinery`.
DISTRIBUTION = "corpus-refinery"
