"""A coder for lazy groups, which refuses: a group is read where its consumer runs, and never crosses a runner.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from typing import Any

from apache_beam.coders import coder_impl
from apache_beam.coders.coders import FastCoder

from refinery.transforms.core.exchange.partition_file import Group
from refinery.transforms.core.exchange.tally import ExchangeError


class _LazyGroupImpl(coder_impl.StreamCoderImpl):
    def encode_to_stream(self, value: Any, stream: Any, nested: bool) -> None:
        raise ExchangeError("a group was about to be copied whole: its reader and its consumer are separated")

    def decode_from_stream(self, stream: Any, nested: bool) -> Any:
        raise ExchangeError("a group of an exchange cannot be decoded")

    def estimate_size(self, value: Any, nested: bool = False) -> int:
        return 1


class LazyGroupCoder(FastCoder):
    """Refuses: a lazy group never crosses a runner."""

    def _create_impl(self) -> Any:
        return _LazyGroupImpl()

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return Group

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))
