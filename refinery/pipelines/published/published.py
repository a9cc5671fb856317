"""A finished corpus, or one that was adopted, with texts, rules over its columns, and lookups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.removals import ID_BYTES
from refinery.loader.format.shard_files import load_index
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.published.columns import SPANS, TEXT, TEXT_BYTES, Columns, with_places
from refinery.pipelines.published.find_rows import Row, Wanted, find_kept
from refinery.pipelines.published.lookup_index import LookupIndex
from refinery.pipelines.published.scan import Say, silent
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.pipelines.published.shard_tokens import corpus_tokenizer, read_row, read_tokens, shard_path, without_ends
from refinery.transforms.core.document import TEXT_ID, document_id, text_bytes

if TYPE_CHECKING:
    from refinery.pipelines.published.statistics.published import Statistics
    from refinery.transforms.core.stage import Writer
    from refinery.transforms.tokenize.tokenizer import Tokenizer

Numbers = npt.NDArray[np.int64]

TEXT_BATCH = 16 << 20  # bytes of tokens that are decoded together


@dataclass(frozen=True)
class Place:
    """Where a document is. shard: path of its files without suffix. document: its number there. Its tokens, with BOS
    and EOS, are token_offset to token_offset + token_count of the shard; both are -1 in a corpus of texts."""

    split: str
    domain: str
    shard: str
    document: int
    token_offset: int
    token_count: int


class TextsOf(Protocol):
    """The texts of a shard's documents, which are asked for in order."""

    def sizes(self, batch: pa.RecordBatch) -> npt.NDArray[Any]:
        """Bytes that are read for each document of a batch."""

    def texts(self, batch: pa.RecordBatch, numbers: Numbers) -> Iterator[str]:
        """Their texts. numbers: of the documents in the shard."""


class DecodedTexts:
    """A corpus of tokens, which are read in ranges, including what is between two documents."""

    def __init__(self, corpus: "PublishedCorpus", entry: ShardEntry) -> None:
        self._corpus, self._entry = corpus, entry
        self._itemsize = np.dtype(corpus.manifest.dtype).itemsize

    def sizes(self, batch: pa.RecordBatch) -> npt.NDArray[Any]:
        return np.asarray(batch.column("token_count").to_numpy() * self._itemsize)

    def texts(self, batch: pa.RecordBatch, numbers: Numbers) -> Iterator[str]:
        offsets, counts = (batch.column(name).to_numpy() for name in SPANS)
        ids, first = np.empty(0, np.int64), 0
        size = TEXT_BATCH // self._itemsize
        for offset, count in zip(offsets.tolist(), counts.tolist(), strict=True):
            if not first <= offset <= offset + count <= first + len(ids):
                near = offsets + counts
                end = int(near[near <= offset + max(size, count)].max(initial=offset + count))
                ids, first = read_tokens(self._corpus, self._entry, offset, end), offset
            yield self._corpus.decode(ids[offset - first : offset - first + count])


class WrittenTexts:
    """Of a corpus of texts, whose shards are read from the beginning. what: the shard, for messages."""

    def __init__(self, texts: Iterator[str], what: str) -> None:
        self._texts, self._what, self._next = texts, what, 0

    def sizes(self, batch: pa.RecordBatch) -> npt.NDArray[Any]:
        return np.asarray(batch.column(TEXT_BYTES).to_numpy())

    def texts(self, batch: pa.RecordBatch, numbers: Numbers) -> Iterator[str]:
        for number, size in zip(numbers.tolist(), self.sizes(batch).tolist(), strict=True):
            text = next(islice(self._texts, number - self._next, None), None)
            self._next = number + 1
            if text is None or text_bytes(text) != size:
                found = "no text" if text is None else f"a text of {text_bytes(text)} bytes"
                raise FormatError(f"{self._what}: document {number}: {found} found, {size} bytes expected")
            yield text


@dataclass(frozen=True)
class Found:
    """A document of a corpus: its place, and its provenance row without `meta`."""

    place: Place
    row: Row


def id_bytes(id_: str | bytes) -> bytes:
    """An id as bytes. Raises ValueError unless it is 16 bytes or 32 hexadecimal digits."""
    try:
        found = bytes.fromhex(id_) if isinstance(id_, str) else bytes(id_)
    except ValueError:
        found = b""
    if len(found) != ID_BYTES:
        raise ValueError(f"id: {id_!r:.80} given, {ID_BYTES} bytes or {2 * ID_BYTES} hexadecimal digits are allowed")
    return found


class PublishedCorpus(Corpus):
    """As `refinery.loader.Corpus`, which says what is checked, with texts, rules and lookups.

    say: receives progress lines of a long search. writer: of a corpus of texts, where it is neither ours nor an
    installed package's. Tokenizer and lookup index are read when they are first needed.
    """

    def __init__(self, location: str | Store, say: Say = silent, writer: "Writer | None" = None) -> None:
        super().__init__(location)
        self._say, self._writer = say, writer

    @property
    def kind(self) -> str:
        """ "corpus", or "adopted" where another tool wrote its tokens."""
        return "adopted" if self.is_adopted else "corpus"

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer in the corpus. Raises ValueError or FormatError where it is damaged."""
        return corpus_tokenizer(self)

    @cached_property
    def writer(self) -> "Writer":
        """What wrote its shards. Raises FormatError where that is not known here."""
        from refinery.pipelines.recipe.writers import find_writer  # all lanes, which few need

        return find_writer(self.manifest, self._writer)

    @cached_property
    def lookup(self) -> LookupIndex:
        """Which files may have an address or an origin."""
        return LookupIndex(self, self._say)

    def statistics(self) -> "Statistics | None":
        """What was measured of its documents. As `read_statistics`."""
        from refinery.pipelines.published.statistics.published import read_statistics  # pydantic

        return read_statistics(self)

    # --- documents ---

    def documents(
        self, columns: Sequence[str] | None = None, where: str = "", split: str = "", domain: str = ""
    ) -> Iterator[pa.RecordBatch]:
        """Its documents in the order of its shards, in batches, each of one shard.

        columns: of the provenance (None: all of them), and beside these `text`, `split`, `domain`, `shard` and
        `document`, the number in its shard. where: a rule over columns of the provenance, docs/labels.md. split,
        domain: "" for all.

        Raises ExpressionError for a rule, ValueError for columns that there are not, FormatError for damage. Cost:
        columns that are asked for or in the rule, and where there is `text` the tokens of the documents that meet it;
        in a corpus of texts the shards up to the last of these. Memory: a batch of 16,384 rows, and of texts 16 MiB or
        what 16 MiB of tokens give.
        """
        for entry in self.entries(split, domain):
            for batch, _ in self.rows(entry, columns, where):
                yield batch

    def rows(
        self,
        entry: ShardEntry,
        columns: Sequence[str] | None = None,
        where: str = "",
        of: Numbers | None = None,
        place: tuple[str, str, str] | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, Numbers]]:
        """The documents of one shard as from `documents`, each batch with their numbers in the shard. of: only
        these numbers, ascending. place: what `split`, `domain` and `shard` are, where they are not the shard's own."""
        chosen = Columns(self.schema, columns, where, self.root)
        here = place or (entry.split, entry.domain, shard_path(entry))
        first, texts = 0, self._texts_of(entry) if chosen.has_text else None
        for batch in self._facts(entry, chosen):
            numbers = chosen.rows(batch)
            if of is not None:
                numbers = numbers[np.isin(numbers + first, of, assume_unique=True)]
            some = batch if len(numbers) == batch.num_rows else batch.take(pa.array(numbers))
            numbers += first
            first += batch.num_rows
            if len(numbers):
                yield from self._with_text(chosen, with_places(some, *here, numbers), texts, numbers)

    def _facts(self, entry: ShardEntry, chosen: Columns) -> Iterator[pa.RecordBatch]:
        """What is read of a shard's documents: of an adopted corpus where their tokens are, since nothing else is
        known."""
        if not self.is_adopted:
            yield from self.provenance(entry, chosen.read)
            return
        if chosen.of_provenance:
            raise FormatError(f"{self.root} was adopted from files without provenance, so it has no such columns")
        index = load_index(self.store, entry)
        columns = [pa.array(index.offsets), pa.array(index.lengths.astype(np.int64))]
        yield pa.RecordBatch.from_arrays(columns, names=list(SPANS))

    def _with_text(
        self, chosen: Columns, batch: pa.RecordBatch, texts: "TextsOf | None", numbers: Numbers
    ) -> Iterator[tuple[pa.RecordBatch, Numbers]]:
        if texts is None:
            yield batch.select(chosen.names), numbers
            return
        part = np.cumsum(texts.sizes(batch)) // TEXT_BATCH
        bounds = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), batch.num_rows]
        for begin, end in pairwise(bounds):
            some = batch.slice(begin, end - begin)
            column = pa.array(texts.texts(some, numbers[begin:end]), pa.string())
            yield some.append_column(TEXT, column).select(chosen.names), numbers[begin:end]

    def _texts_of(self, entry: ShardEntry) -> "TextsOf":
        if self.manifest.has_tokens:
            return DecodedTexts(self, entry)
        return WrittenTexts(shard_texts(self.store, self.writer, entry), self.store.url(entry.name))

    def decode(self, ids: npt.NDArray[Any]) -> str:
        """The text of a document's tokens, without BOS and EOS."""
        return self.tokenizer.decode(without_ends(self.manifest, ids))

    # --- one document ---

    def find(self, url: str | None = None, origin: str | None = None, id: str | bytes | None = None) -> list[Found]:
        """The documents of the corpus with that address, origin (file@offset) or id: any of those that are given, in
        the order of shards. An address is compared as it was published, `refinery trace` knows redacted ones too.

        Raises FormatError for an adopted corpus, and for damage. Cost: of an id one shard of each domain and split,
        of an address or an origin 0.2 MB of the lookup index and the files that it names; without an index all files.
        """
        if url is origin is id is None:
            raise ValueError("find: nothing given, url, origin or id is needed")
        if self.is_adopted:
            raise FormatError(
                f"{self.root} was adopted from files without provenance, so documents cannot be looked up"
            )
        wanted = Wanted(
            frozenset([url] if url is not None else []),
            frozenset([id_bytes(id)] if id is not None else []),
            frozenset([origin] if origin is not None else []),
        )
        return [self._found(*each) for each in find_kept(self, wanted, self.lookup, self._say)]

    def _found(self, entry: ShardEntry, number: int, row: Row) -> Found:
        span = row.get("token_offset", -1), row.get("token_count", -1)
        return Found(Place(entry.split, entry.domain, shard_path(entry), number, *span), row)

    def place(self, id: str | bytes) -> Place:
        """Where the document of that id is, the first of several with it. Raises KeyError where there is none."""
        found = self.find(id=id)
        if not found:
            raise KeyError(f"{self.root}: no document has the id {id_bytes(id).hex()}")
        return found[0].place

    def tokens(self, document: str | bytes | Place) -> npt.NDArray[Any]:
        """The tokens of a document, given by id or place, with BOS and EOS, int64 [n]. Raises KeyError as `place`."""
        place = document if isinstance(document, Place) else self.place(document)
        return read_tokens(self, self.shard(place.shard), place.token_offset, place.token_offset + place.token_count)

    def text(self, document: str | bytes | Place) -> str:
        """The text of a document as published, decoded from its tokens. `tokenizer.lossless` says whether that is the
        text that was encoded, byte for byte. Of a corpus of texts what was written, compared with the document's size
        and id; cost: the shard up to it. Raises KeyError as `place`, FormatError for another text."""
        if self.manifest.has_tokens:
            return self.decode(self.tokens(document))
        place = document if isinstance(document, Place) else self.place(document)
        shard, what = self.shard(place.shard), self.store.url(place.shard)
        row = read_row(self, shard, place.document, ("id", TEXT_BYTES, "meta"))
        written = pa.RecordBatch.from_pylist([{TEXT_BYTES: row[TEXT_BYTES]}])
        texts = WrittenTexts(shard_texts(self.store, self.writer, shard), what)
        text = next(texts.texts(written, np.array([place.document])))
        if document_id(text).hex() != orjson.loads(row["meta"]).get(TEXT_ID, row["id"].hex()):
            raise FormatError(f"{what}: document {place.document}: the text is not that of its id")
        return text

    def shard(self, name: str) -> ShardEntry:
        """The shard of that name: the path of its files without suffix. Raises KeyError."""
        found = self._shards_by_name.get(name)
        if found is None:
            raise KeyError(f"{self.root}: no shard is named {name!r:.200}")
        return found

    @cached_property
    def _shards_by_name(self) -> dict[str, ShardEntry]:
        return {shard_path(entry): entry for entry in self.manifest.shards}

    def row(self, place: Place) -> Row:
        """The provenance row of a document, without `meta`. Cost: its row group."""
        return read_row(self, self.shard(place.shard), place.document)
