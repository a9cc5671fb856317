"""An export of a corpus, with the same methods; documents are read from its files."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from refinery.loader.errors import written_by_a_run
from refinery.loader.format.parquet.guarded import listed_parquet
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.export_format import TOKENS
from refinery.pipelines.corpus.export.export_manifest import manifest_name, read_export
from refinery.pipelines.published.columns import TEXT, Columns
from refinery.pipelines.published.published import Found, Place, id_bytes
from refinery.pipelines.published.scan import Say, silent
from refinery.transforms.core.wording import nearest

BATCH_ROWS = 1024


class ExportedCorpus:
    """The export at a location: files of texts, or of tokens with a provenance beside them.

    Opening reads manifest.json alone. Raises FormatError for one that is missing or damaged.
    """

    kind = "export"

    def __init__(self, location: str | Store, say: Say = silent) -> None:
        self.store = open_store(location) if isinstance(location, str) else location
        self.manifest: Mapping[str, Any]
        self.manifest, self.sha256 = read_export(self.store)
        self._where = self.store.url(manifest_name(self.store))

    @property
    def root(self) -> str:
        """Where it is."""
        return self.store.root

    @property
    def name(self) -> str:
        """The name of the corpus that it is of; of several, those of all."""
        with written_by_a_run(f"{self._where}: its corpora are"):
            corpora = self.manifest.get("corpora") or [self.manifest["corpus"]]
            return ", ".join(str(corpus["name"]) for corpus in corpora)

    @property
    def format(self) -> str:
        """Of its files: "jsonl", "parquet", …"""
        with written_by_a_run(f"{self._where}: its options are"):
            return str(self.manifest["options"]["format"])

    def documents(
        self, columns: Sequence[str] | None = None, where: str = "", split: str = "", domain: str = ""
    ) -> Iterator[pa.RecordBatch]:
        """Its documents in the order of its files, in batches of 1,024 at most. columns: those of a row, which the
        export's `--fields` chose; of tokens those of provenance/, and no text. where, split, domain: as of
        `PublishedCorpus.documents`. Cost: a read of every file of the split. Memory: a batch; of MDS a file."""
        with written_by_a_run(f"{self._where}: its files are"):
            name = "provenance" if self.format == TOKENS else "shards"
            parts = [part for part in self.manifest[name] if split in ("", part["split"])]
            paths = [str(part["file"]["path"]) for part in parts]
        columns_of: dict[pa.Schema, Columns] = {}  # the types of a row of JSON are those that its batch has
        for path in paths:
            for batch in self._file(path):
                if batch.schema not in columns_of:
                    columns_of[batch.schema] = self._columns(batch.schema, columns, self._rule(where, domain))
                chosen = columns_of[batch.schema]
                rows = chosen.rows(batch)
                if len(rows):
                    yield batch.take(pa.array(rows)).select(chosen.names)

    def _columns(self, schema: pa.Schema, columns: Sequence[str] | None, rule: str) -> Columns:
        chosen = Columns(schema, columns, rule, self.root)
        if unknown := [each for each in chosen.names if each not in schema.names]:
            raise ValueError(f"columns: {unknown[0]!r} given of {self.root}, {nearest(unknown[0], schema.names)}")
        return chosen

    def _rule(self, where: str, domain: str) -> str:
        if not domain:
            return where
        if not domain.isidentifier() and not domain.replace("-", "").replace(".", "").isalnum():
            raise ValueError(f"domain: {domain!r:.80} given, a name is allowed")
        return f"({where}) and domain == '{domain}'" if where else f"domain == '{domain}'"

    def _file(self, path: str) -> Iterator[pa.RecordBatch]:
        if self.format == TOKENS:
            with listed_parquet(self.store, path) as file:
                yield from file.iter_batches(BATCH_ROWS)
            return
        from refinery.pipelines.corpus.export.read_documents import read_documents  # all formats, and users' own

        with written_by_a_run(f"{self._where}: its fields are"):
            fields = [str(name) for name in self.manifest["fields"]]
        with self.store.open(path) as stream:
            rows = read_documents(stream, path, self.format, fields)
            while some := list(islice(rows, BATCH_ROWS)):
                for row in some:
                    row["id"] = id_bytes(row["id"]) if "id" in row else b""
                yield pa.RecordBatch.from_pylist([{name: row[name] for name in fields} for row in some])

    def find(self, url: str | None = None, origin: str | None = None, id: str | bytes | None = None) -> list[Found]:
        """The documents with that address, origin or id: any of those that are given. Cost: a read of all files."""
        if url is origin is id is None:
            raise ValueError("find: nothing given, url, origin or id is needed")
        wanted = {"url": url, "origin": origin, "id": None if id is None else id_bytes(id)}
        found = []
        for batch in self.documents():
            for row in batch.to_pylist():
                if any(value is not None and row.get(name) == value for name, value in wanted.items()):
                    place = Place(row.get("split", ""), row.get("domain", ""), "", -1, -1, row.get("token_count", -1))
                    found.append(Found(place, row))
        return found

    def text(self, id: str | bytes) -> str:
        """The text of the document of that id. Raises KeyError where there is none, and of an export without texts."""
        for found in self.find(id=id):
            if TEXT in found.row:
                return str(found.row[TEXT])
        raise KeyError(f"{self.root}: no document with a text has the id {id_bytes(id).hex()}")
