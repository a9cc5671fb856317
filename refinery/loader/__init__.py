"""Streaming of a finished corpus into training: `from refinery.loader import TokenStream`.

Names are imported on first access, so that importing `refinery.loader.format.manifest` alone stays cheap. PyTorch
adapters are in `refinery.loader.torch.adapter`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refinery.loader.errors import CorruptObject, CorruptShard, FormatError, NoTokens
    from refinery.loader.order.length_stages import LengthStage
    from refinery.loader.order.mix_params import MixParams, MixStage
    from refinery.loader.order.mixing import RepetitionLimit
    from refinery.loader.order.order import OrderParams
    from refinery.loader.packing.packing import BestFitParams
    from refinery.loader.read.corpus import Corpus
    from refinery.loader.read.remote.blocks import RemoteParams
    from refinery.loader.storage.fetch import FetchError, FetchParams
    from refinery.loader.storage.store import StorageError
    from refinery.loader.stream.fill_in_middle import FillInMiddleParams
    from refinery.loader.stream.node import NodeStream
    from refinery.loader.stream.packed.decoded_cache import DecodedParams
    from refinery.loader.stream.packed.packed_stream import PackedStream
    from refinery.loader.stream.state import StateError
    from refinery.loader.stream.stream import TokenStream
    from refinery.loader.stream.usage import UsageError

_MODULES = {
    "BestFitParams": "packing.packing",
    "Corpus": "corpus.corpus",
    "CorruptObject": "errors",
    "CorruptShard": "errors",
    "DecodedParams": "packed.decoded_cache",
    "FetchError": "storage.fetch",
    "FetchParams": "storage.fetch",
    "FillInMiddleParams": "stream.fill_in_middle",
    "FormatError": "errors",
    "LengthStage": "lengths.stages",
    "MixParams": "order.mix_params",
    "MixStage": "order.mix_params",
    "NoTokens": "errors",
    "NodeStream": "stream.node",
    "OrderParams": "order.order",
    "PackedStream": "packed.packed_stream",
    "RemoteParams": "remote.blocks",
    "RepetitionLimit": "order.mixing",
    "StateError": "stream.state",
    "StorageError": "storage.store",
    "TokenStream": "stream.stream",
    "UsageError": "stream.usage",
}

__all__ = [
    "BestFitParams",
    "Corpus",
    "CorruptObject",
    "CorruptShard",
    "DecodedParams",
    "FetchError",
    "FetchParams",
    "FillInMiddleParams",
    "FormatError",
    "LengthStage",
    "MixParams",
    "MixStage",
    "NoTokens",
    "NodeStream",
    "OrderParams",
    "PackedStream",
    "RemoteParams",
    "RepetitionLimit",
    "StateError",
    "StorageError",
    "TokenStream",
    "UsageError",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
