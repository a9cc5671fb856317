"""What rows that stay tell their copies, for labels: their names, and how many rows they stay for.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import orjson

from refinery.transforms.core.document import COPIES, OFFSET_BITS
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.names import LABEL_ORIGINAL as ORIGINAL
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.shuffle import shard_key

SPLIT = "train"
OFFSETS = (1 << OFFSET_BITS) - 1


class Original(NamedTuple):
    """The row that stays for a copy. name: its own id, or file@offset; the document's id where it is in another corpus.
    size: rows of these inputs that it stays for, itself included."""

    name: str
    size: int


def own_name(meta: Mapping[str, Any], origin: str) -> str:
    """How a row is named in labels: by its own id, or by its place."""
    return str(meta.get("record_id") or origin)


def name_original(doc: EncodedDocument) -> Iterator[tuple[bytes, bytes]]:
    """Under the id of a document that stays for others: its name and their number. Under that of the one that stays for
    it: where a copy is."""
    if ORIGINAL in doc.meta:
        copy = {"source": doc.source, "number": doc.position >> OFFSET_BITS, "offset": doc.position & OFFSETS}
        yield bytes.fromhex(str(doc.meta[ORIGINAL])), orjson.dumps(copy)
    elif int(doc.meta[COPIES]) > 1:
        yield doc.id, orjson.dumps([own_name(doc.meta, doc.origin), int(doc.meta[COPIES])])


def hand_out_name(key: bytes, values: Iterable[bytes], domains: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    """What a document says to all of its copies, under the keys of their files: offset, name, size. Memory: the copies'
    places."""
    found = [orjson.loads(value) for value in values]
    copies = [each for each in found if isinstance(each, dict)]
    name, size = min((each for each in found if isinstance(each, list)), default=[key.hex(), len(copies)])
    for each in copies:
        place = shard_key(f"{SPLIT}/{domains[each['source']]}", each["number"])
        yield place, orjson.dumps([each["offset"], name, size])


def originals_of_copies(docs: beam.PCollection, domains: Mapping[str, str]) -> beam.PCollection:
    """Documents -> (key of a file, a line of `hand_out_name`) for each copy among them."""
    named = docs | "originals" >> beam.FlatMap(name_original).with_output_types(tuple[bytes, bytes])
    hand = beam.FlatMapTuple(partial(hand_out_name, domains=dict(domains)))
    return named | Exchange("by original") | "name originals" >> hand.with_output_types(tuple[bytes, bytes])
