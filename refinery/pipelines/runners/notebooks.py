"""Runs in a notebook: as anywhere else.

Beam notices IPython. It then imports its interactive runner, which needs pandas and more that is not installed here,
and puts the cell's number into the names of steps.
"""

import contextlib
import threading
from collections.abc import Iterator

import apache_beam.pipeline
import apache_beam.utils.interactive_utils

ASKING = (apache_beam.pipeline, apache_beam.utils.interactive_utils)  # modules that ask whether they are in IPython


_lock = threading.Lock()
_inside = 0  # runs that are going on, in any thread
_before = [module.is_in_ipython for module in ASKING]


@contextlib.contextmanager
def as_outside_notebooks() -> Iterator[None]:
    """While pipelines are built and run here, Beam takes this process for one without IPython."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = [module.is_in_ipython for module in ASKING]
        _inside += 1
        for module in ASKING:
            module.is_in_ipython = bool
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for module, function in zip(ASKING, _before, strict=True):
                    module.is_in_ipython = function
