"""What is kept of dropped documents."""

from refinery.transforms.core.params import Count, Params, Share


class RejectParams(Params):
    """What is kept of dropped documents."""

    rate: Share = 0.01
    """share of what the stages drop that is sampled into `rejects/`, by hash of origin and reason; duplicates never
    are"""
    excerpt_chars: Count = 0
    """characters of text kept with each"""


# The stage that holds sources to their targets, and its reason, which rejects/ never lists. Here since readers of a
# corpus need them without Beam.
TARGET_STAGE, OVER_TARGET = "target", "over-target"

DEFAULT_REJECTS = RejectParams()
