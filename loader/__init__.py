"""Corpora, read: `from refinery.loader import TokenStream`.

The name is loaded when it is asked for, so that `refinery.loader.format.manifest` stays light to import.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refinery.loader.stream.stream import TokenStream

__all__ = ["TokenStream"]


def __getattr__(name: str) -> Any:
    if name == "TokenStream":
        from refinery.loader.stream.stream import TokenStream

        return TokenStream
    raise AttributeError(f"module 'loader' has no attribute {name!r}")
