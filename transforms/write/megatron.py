"""The writer of Megatron's indexed data sets, declared."""

from typing import Any

from refinery.loader.format.manifest import WRITER
from refinery.transforms.core.stage import Writer
from refinery.transforms.write.shards import ShardsJob


def megatron_shards(docs: Any, job: ShardsJob) -> Any:
    """`write_megatron`, imported where a graph is built: what only looks at declarations needs no Beam."""
    from refinery.transforms.write.write_shards import write_megatron

    return write_megatron(docs, job)


MEGATRON = Writer(
    name=WRITER,
    version=2,
    summary="Shuffle the documents and write them as Megatron's indexed data sets, with provenance.",
    uses=("name", "shards", "packed", "columns"),
    libraries=("pyarrow",),
    transform=megatron_shards,
    kinds=("bin", "idx", "provenance"),
)
