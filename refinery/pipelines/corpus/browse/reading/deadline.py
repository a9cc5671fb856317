"""A bound on the time that a request may take: work looks at it between its steps, and says where it stopped."""

import time
from dataclasses import dataclass, field

SECONDS = 4.0  # of a search: then the page has what was found so far, and a link that goes on


@dataclass(frozen=True)
class Deadline:
    """So many seconds from now."""

    seconds: float = SECONDS
    started: float = field(default_factory=time.monotonic)

    @property
    def has_passed(self) -> bool:
        """Whether it is time to stop."""
        return time.monotonic() - self.started >= self.seconds
