"""What every writer of shards promises, as tests that a writer's author inherits."""

import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pyarrow.parquet as pq

from refinery.testing.expect import expect
from refinery.transforms.core.document import Document, Scalar, document_id
from refinery.transforms.core.stage import Writer
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import DocumentBatch, new_compressor, read_batches
from refinery.transforms.write.shards import write_shard
from refinery.transforms.write.shuffle import order_key, shard_key
from refinery.transforms.write.text_stage import TextParams, finish_text

DTYPE = "uint16"  # of tokens
TEXTS = (
    "a",
    "two\nlines\r\n and\ttabs",
    "naïve 中文 😀 \u2028 \u0085 \x7f \x00",
    '"quotes", \\ and, commas',
    " spaces ",
    "x" * 70_000,
)


class WriterTests:
    """Tests of one writer. Give it `writer`, the declaration.

    What they hold it to: what it wrote is read back, document by document, in the order of the provenance, with control
    characters, other scripts and long texts; the same documents give the same bytes; a file that is cut off is an
    error, or documents that are missing, and never other ones; the declaration can be sent to another process.
    """

    writer: ClassVar[Writer]

    # --- what the tests are made of ---------------------------------------------------------------------------------

    def documents(self, count: int = 40) -> list[EncodedDocument]:
        """Documents as they reach a writer: texts, or tokens where it counts these."""
        found = []
        for number in range(count):
            text = f"{TEXTS[number % len(TEXTS)]}{number}"
            meta: dict[str, Scalar] = {
                "copies": 1 + number % 3,
                "copy_sources": "s",
                "language": ("en", "")[number % 2],
            }
            url, origin = f"https://example.org/{number}" if number % 3 else "", f"crawl/a.warc.gz@{number}"
            doc = finish_text(Document(document_id(text), text, url, "s", origin, number, meta), TextParams())
            if self.writer.counts_tokens:
                tokens = doc.tokens.astype(DTYPE)
                doc = EncodedDocument(doc.id, tokens, doc.source, doc.url, doc.origin, doc.text_bytes, doc.meta)
            found.append(doc)
        return found

    def written(self, folder: Path, documents: Sequence[EncodedDocument]) -> dict[str, Path]:
        """The files of a shard of these documents: kind -> path, `provenance` too."""
        batch = DocumentBatch()
        for doc in documents:
            batch.add(order_key(1, doc.id), doc, b"")
        dtype = DTYPE if self.writer.counts_tokens else ""
        tables = read_batches([batch.pack(new_compressor())])
        folder.mkdir(parents=True, exist_ok=True)
        made = write_shard(shard_key("train/web", 0), tables, str(folder), {"train/web": 1}, dtype, writer=self.writer)
        files: dict[str, Any] = orjson.loads(next(iter(made)))["files"]
        return {kind: folder / file["path"] for kind, file in files.items()}

    def read(self, paths: dict[str, Path]) -> list[bytes]:
        """What `read` gives of these files."""
        with ExitStack() as stack:
            return list(
                self.writer.read({kind: stack.enter_context(paths[kind].open("rb")) for kind in self.writer.files})
            )

    # --- the tests --------------------------------------------------------------------------------------------------

    def test_documents_are_read_back_as_they_were_written(self, tmp_path: Path) -> None:
        documents = self.documents()
        paths = self.written(tmp_path, documents)
        found, known = self.read(paths), {doc.id: doc.tokens.tobytes() for doc in documents}
        ids = pq.read_table(paths["provenance"])["id"].to_pylist()
        expect(len(found) == len(ids), f"{len(found)} documents read, {len(ids)} written")
        for place, (id_, content) in enumerate(zip(ids, found, strict=True)):
            expect(content == known[id_], f"document {place}: {content!r:.80} read, {known[id_]!r:.80} written")

    def test_a_shard_of_one_document(self, tmp_path: Path) -> None:
        documents = self.documents(1)
        found = self.read(self.written(tmp_path, documents))
        expect(found == [documents[0].tokens.tobytes()], f"{found!r:.80} read of one document")

    def test_each_kind_is_a_file_with_its_ending(self, tmp_path: Path) -> None:
        paths = self.written(tmp_path, self.documents(3))
        expect(tuple(sorted(paths)) == tuple(sorted(self.writer.kinds)), f"files {sorted(paths)} found")
        for kind, ending in self.writer.files.items():
            expect(paths[kind].name.endswith(ending) and paths[kind].is_file(), f"{kind}: {paths[kind].name} found")

    def test_the_same_documents_give_the_same_bytes(self, tmp_path: Path) -> None:
        documents = self.documents()
        first, second = self.written(tmp_path / "first", documents), self.written(tmp_path / "second", documents[::-1])
        for kind in self.writer.kinds:
            expect(first[kind].read_bytes() == second[kind].read_bytes(), f"{kind}: two files of the same shard differ")

    def test_a_file_that_is_cut_off(self, tmp_path: Path) -> None:
        paths = self.written(tmp_path, self.documents(20))
        whole = self.read(paths)
        for kind in self.writer.files:
            data = paths[kind].read_bytes()
            for part in range(1, 12):
                paths[kind].write_bytes(data[: len(data) * part // 12])
                found: list[bytes] = []
                try:
                    found = self.read(paths)
                except Exception:  # noqa: BLE001, S112 - whatever the format's library raises
                    continue
                expect(found == whole[: len(found)], f"{kind} cut at {part}/12: documents differ from those written")
                expect(len(found) < len(whole), f"{kind} cut at {part}/12: all documents are there")
            paths[kind].write_bytes(data)

    def test_it_can_be_sent_to_another_process(self) -> None:
        try:
            same = pickle.loads(pickle.dumps(self.writer)) == self.writer  # noqa: S301 - its own bytes
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise AssertionError(f"functions have to be those of a module, by name: {error}") from None
        expect(same, "another declaration came back")
