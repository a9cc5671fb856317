"""What is kept of dropped documents."""

from collections.abc import Iterator

from refinery.transforms.core.params import Count, Params, Share


class RejectParams(Params):
    """What is kept of dropped documents."""

    rate: Share = 0.01
    """share of what the stages drop that is sampled into `rejects/`, by hash of origin and reason; duplicates never
    are"""
    excerpt_chars: Count = 0
    """characters of text kept with each"""

    def idle(self) -> Iterator[tuple[str, str]]:
        """The excerpt of nothing."""
        if not self.rate:
            yield "excerpt_chars", "rejects.rate is 0, so nothing is listed"


DEFAULT_REJECTS = RejectParams()
