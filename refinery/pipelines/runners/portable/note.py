"""What was found out about the engine of a portable runner."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Note:
    """what: "problem" if a run cannot work, "warning" if it may not, "ok". line: one sentence, with what to do."""

    what: Literal["ok", "warning", "problem"]
    line: str
