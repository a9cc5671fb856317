"""Pickles of a graph that stays on this machine, packed quickly.

Beam packs each function of a graph by bzip2, which prepares 4 MB of tables for the few hundred bytes that most of them
have: a tenth of a small run. On one machine zlib at its fastest does. What is sent to a service is packed as before.
"""

import bz2
import contextlib
import zlib
from collections.abc import Iterator
from contextvars import ContextVar

ZLIB = b"\x78"  # how its streams begin; those of bzip2 begin with "B"

_quick: ContextVar[bool] = ContextVar("quick_pickles", default=False)


class Packer:
    """Stands for the module `bz2` in Beam's pickler."""

    @staticmethod
    def compress(data: bytes, compresslevel: int = 9) -> bytes:
        return zlib.compress(data, 1) if _quick.get() else bz2.compress(data, compresslevel)

    @staticmethod
    def decompress(data: bytes) -> bytes:
        return zlib.decompress(data) if data[:1] == ZLIB else bz2.decompress(data)


def read_quick_pickles() -> None:
    """From now on this process reads either kind."""
    from apache_beam.internal import cloudpickle_pickler

    cloudpickle_pickler.bz2 = Packer


@contextlib.contextmanager
def quick_pickles() -> Iterator[None]:
    """What this context pickles is for processes of this machine that `read_quick_pickles`."""
    read_quick_pickles()
    token = _quick.set(True)
    try:
        yield
    finally:
        _quick.reset(token)
