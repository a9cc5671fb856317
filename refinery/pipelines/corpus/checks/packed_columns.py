"""The checks of the columns of packed rows' tokens that no row alone can tell: over the pieces of a document, against
its text's size, and, for a sample, against columns made again from its tokens."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.packed import STRUCTURE, UNKNOWN, PackedRows
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.storage.store import Store
from refinery.transforms.tokenize.chunk_notes import CHUNKS
from refinery.transforms.tokenize.token_columns import Lost, read_columns, token_columns
from refinery.transforms.tokenize.tokenizer import Tokenizer

I64 = npt.NDArray[np.int64]

PLACES = ("chunk_id", "char_start", "char_end")  # that never go back inside a document


class ColumnCheck:
    """What the pieces of a shard's documents have of columns. sampled: ids of documents that are kept whole.

    Memory: 48 bytes a piece, 25 a token of the sample.
    """

    def __init__(self, sampled: set[bytes]) -> None:
        self._sampled = sampled
        self._kept: dict[bytes, list[tuple[int, dict[str, npt.NDArray[Any]]]]] = {}
        self._ends: tuple[list[I64], list[I64]] = ([], [])

    def add(self, block: PackedRows, firsts: I64, sizes: I64, ids: Sequence[bytes], starts: I64) -> None:
        """The pieces of a row group. firsts, sizes: of their tokens among all that are not padding, with a BOS that was
        put in. ids, starts: of the documents, and of the tokens that they begin with."""
        inside = block.doc_ids.reshape(-1) >= 0
        places = np.stack([block.column(name).reshape(-1)[inside] for name in PLACES], axis=1).astype(np.int64)
        last = firsts + sizes - 1
        last -= (places[last, 0] == UNKNOWN) & (sizes > 2)  # EOS
        for found, where in zip(self._ends, (firsts + (sizes > 1), last), strict=True):
            found.append(places[where])
        wanted = [number for number, id_ in enumerate(ids) if id_ in self._sampled]
        if wanted:
            columns = {name: block.column(name).reshape(-1)[inside] for name in STRUCTURE}
            columns["input_ids"] = block.input_ids.reshape(-1)[inside]
        for number in wanted:
            part = slice(firsts[number] + (starts[number] > 0), firsts[number] + sizes[number])
            piece = int(starts[number]), {name: values[part].copy() for name, values in columns.items()}
            self._kept.setdefault(ids[number], []).append(piece)

    def check_ends(self, owners: I64, starts: I64, tokens: I64, sizes: I64) -> Iterator[tuple[int, str]]:
        """(document, what is wrong with it), the first of each kind. owners, starts, tokens: of the pieces, without a
        BOS that was put in. sizes: UTF-8 bytes of the documents' texts. Documents of several copies are left out."""
        empty = np.empty((0, len(PLACES)), np.int64)
        first, last = (np.concatenate([empty, *found]) for found in self._ends)
        copies = np.bincount(owners[starts == 0], minlength=len(sizes)) > 1
        order = np.lexsort((starts, owners))
        order = order[~copies[owners[order]]]
        owners, tokens, first, last = owners[order], tokens[order], first[order], last[order]
        beyond = last[:, 2] > sizes[owners]
        if beyond.any():
            yield int(owners[beyond][0]), "char_end: beyond the end of the text"
        same = owners[1:] == owners[:-1]
        known = first[:, 0] != UNKNOWN
        partly = same & (known[1:] != known[:-1]) & (tokens[1:] > 1)  # an EOS alone has none
        if partly.any():
            yield int(owners[1:][partly][0]), "some of its pieces have columns, others none"
        back = (same & known[1:] & known[:-1])[:, None] & (first[1:] < last[:-1])
        for number, name in enumerate(PLACES):
            if back[:, number].any():
                yield int(owners[1:][back[:, number]][0]), f"{name}: it decreases from piece to piece"

    def check_sample(
        self, store: Store, manifest: Manifest, shard: ShardEntry, tokenizer: Tokenizer, lock: threading.Lock
    ) -> Iterator[tuple[bytes, str]]:
        """(id, what is wrong) of sampled documents whose columns are not those that their tokens and notes give.

        Only for lossless tokenizers: others do not tell what the text was. Cost: a read of two columns of the
        provenance.
        """
        special, names = manifest.tokenizer, manifest.packed.structure if manifest.packed else ()
        around = int(special.bos_id is not None), int(special.eos_id is not None)
        for id_, meta in _notes(store, shard, self._kept):
            pieces = [columns for _, columns in sorted(self._kept[id_], key=lambda piece: piece[0])]
            found = {name: np.concatenate([columns[name] for columns in pieces]) for name in pieces[0]}
            ids = found["input_ids"]
            expected = read_columns(
                _derive(ids[around[0] : len(ids) - around[1]], meta, tokenizer, around, lock), len(ids)
            )
            wrong = [name for name in names if not np.array_equal(found[name], expected[name])]
            for name in wrong[:1]:
                at = int(np.argmax(found[name] != expected[name]))
                values = f"{found[name][at]} found at token {at}, {expected[name][at]} expected"
                yield id_, f"{name}: {values} from its text"


def _derive(
    ids: npt.NDArray[Any], meta: Mapping[str, Any], tokenizer: Tokenizer, around: tuple[int, int], lock: threading.Lock
) -> bytes:
    """The columns of a document's ids, of `token_columns`; none where it has no chunks, or where they are lost."""
    if CHUNKS not in meta:
        return b""
    with lock:
        try:
            return token_columns(tokenizer.decode(ids), ids, meta, tokenizer, around)
        except Lost:
            return b""


def _notes(store: Store, shard: ShardEntry, wanted: Mapping[bytes, Any]) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """(id, meta) of these documents, from the provenance."""
    path = shard.provenance.path
    with store.open(path) as stream, bounded_parquet(stream, path, ["id", "meta"]) as (_, batches):
        for batch in batches:
            for number, id_ in enumerate(batch["id"].to_pylist()):
                if id_ in wanted:
                    yield id_, orjson.loads(batch["meta"][number].as_py())
