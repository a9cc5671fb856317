"""A run in a notebook is a run: Beam's interactive runner, which needs packages of its own, stays out of it."""

import sys
from types import SimpleNamespace

import apache_beam as beam
import pytest
from apache_beam.utils import interactive_utils

from refinery.pipelines.runners.notebooks import as_outside_notebooks
from refinery.pipelines.runners.runner import Runner


@pytest.mark.parametrize("name", ["local", "DirectRunner"])
def test_a_pipeline_runs_as_outside_of_ipython(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(config={"IPKernelApp": {}}, execution_count=7)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    before = interactive_utils.is_in_ipython
    assert interactive_utils.is_in_notebook()
    labels: list[str] = []

    def build(pipeline: beam.Pipeline) -> None:
        numbers = pipeline | "numbers" >> beam.Create([1, 2])
        labels.append(numbers.producer.full_label)

    with Runner(name, workers=0, quiet=True).open() as runner:
        runner.run("test", build)
    assert (
        labels == ["numbers/Map(decode)"]
        and "apache_beam.runners.interactive.interactive_environment" not in sys.modules
    )
    assert interactive_utils.is_in_ipython is before


def test_runs_in_several_threads_leave_nothing_behind() -> None:
    before = interactive_utils.is_in_ipython
    first, second = as_outside_notebooks(), as_outside_notebooks()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert interactive_utils.is_in_ipython is bool
    second.__exit__(None, None, None)
    assert interactive_utils.is_in_ipython is before
