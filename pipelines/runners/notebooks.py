"""Runs in a notebook: as anywhere else.

Beam notices IPython. It then imports its interactive runner, which needs pandas and more that is not installed here,
and puts the cell's number into the names of steps.
"""

import contextlib
from collections.abc import Iterator

import apache_beam.pipeline
import apache_beam.utils.interactive_utils

ASKING = (apache_beam.pipeline, apache_beam.utils.interactive_utils)  # modules that ask whether they are in IPython


@contextlib.contextmanager
def as_outside_notebooks() -> Iterator[None]:
    """While pipelines are built and run here, Beam takes this process for one without IPython."""
    before = [module.is_in_ipython for module in ASKING]
    for module in ASKING:
        module.is_in_ipython = bool
    try:
        yield
    finally:
        for module, function in zip(ASKING, before, strict=True):
            module.is_in_ipython = function
