"""Whether work grows with its input and no faster."""

import time
from collections.abc import Callable


def is_linear(work: Callable[[int], object], small: int, slack: float) -> bool:
    """Whether ten times the input takes less than forty times the process time, and `slack` seconds.

    The large input is measured again, twice at most, only where it took too long: what else happens on the machine
    makes work slower, never faster.
    """

    def seconds(size: int) -> float:
        start = time.process_time()
        work(size)
        return time.process_time() - start

    bound = 40 * min(seconds(small) for _ in range(3)) + slack
    return any(seconds(10 * small) < bound for _ in range(3))
