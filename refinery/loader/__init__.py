"""Streaming of a finished corpus into training: `from refinery.loader import TokenStream`.

Names are imported on first use, so importing `refinery.loader.format.manifest` alone stays cheap. PyTorch
adapters are in `refinery.loader.torch.adapter`.
"""

from typing import TYPE_CHECKING

from refinery.offers import offers

if TYPE_CHECKING:
    from refinery.loader.errors import CorruptObject as CorruptObject
    from refinery.loader.errors import CorruptShard as CorruptShard
    from refinery.loader.errors import FormatError as FormatError
    from refinery.loader.errors import InternalError as InternalError
    from refinery.loader.errors import NoTexts as NoTexts
    from refinery.loader.errors import NoTokens as NoTokens
    from refinery.loader.order.arrays import TokenBatch as TokenBatch
    from refinery.loader.order.batch_stages import BatchStage as BatchStage
    from refinery.loader.order.length_stages import LengthStage as LengthStage
    from refinery.loader.order.mix_params import MixParams as MixParams
    from refinery.loader.order.mix_params import MixStage as MixStage
    from refinery.loader.order.mixing import RepetitionLimit as RepetitionLimit
    from refinery.loader.order.order import OrderParams as OrderParams
    from refinery.loader.packing.buckets import LengthBuckets as LengthBuckets
    from refinery.loader.packing.packing import BestFitParams as BestFitParams
    from refinery.loader.read.corpus import Corpus as Corpus
    from refinery.loader.read.remote.blocks import RemoteParams as RemoteParams
    from refinery.loader.storage.fetch import FetchError as FetchError
    from refinery.loader.storage.fetch import FetchParams as FetchParams
    from refinery.loader.storage.store import StorageError as StorageError
    from refinery.loader.stream.fill_in_middle import CodecError as CodecError
    from refinery.loader.stream.fill_in_middle import FillInMiddleParams as FillInMiddleParams
    from refinery.loader.stream.masks import TooManyRuns as TooManyRuns
    from refinery.loader.stream.node import NodeStream as NodeStream
    from refinery.loader.stream.options import BatchOptions as BatchOptions
    from refinery.loader.stream.options import ReadOptions as ReadOptions
    from refinery.loader.stream.options import RowOptions as RowOptions
    from refinery.loader.stream.packed.decoded_cache import DecodedParams as DecodedParams
    from refinery.loader.stream.packed.packed_stream import PackedStream as PackedStream
    from refinery.loader.stream.state import StateError as StateError
    from refinery.loader.stream.stream import TokenStream as TokenStream
    from refinery.loader.stream.usage import UsageError as UsageError

__getattr__, __dir__ = offers(__name__, __file__)
