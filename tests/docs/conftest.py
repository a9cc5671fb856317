"""The corpus of the end-to-end tests: what pages show runs on it."""

from tests.pipelines.conftest import corpus, inputs

__all__ = ["corpus", "inputs"]
