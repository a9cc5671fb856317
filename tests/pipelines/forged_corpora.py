"""Forged and damaged corpora: a table of what was done to one, and which file of it is wrong.

Checksums are right but for "seal" and "statistics": whoever forges a file can seal a manifest, too.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import MANIFEST, seal
from refinery.loader.format.parquet.pages import MAGIC, MAX_ITEMS
from refinery.loader.format.provenance import PARQUET
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import checksums
from tests.corpus_factory import edit_manifest
from tests.pipelines.corpus.audit.forging import provenance_files

BOMB = 80 << 20  # bytes of the values of a column, which a page of some kilobytes holds


@dataclass(frozen=True)
class Forgery:
    """make: forges the corpus in a folder. meet: opens what is wrong by the door, which refuses it."""

    make: Callable[[Path], None]
    meet: Callable[[Corpus], object]

    def message(self, root: Path) -> str:
        """What the door says of the corpus at `root`, without the folder: the words that every tool has to say."""
        try:
            self.meet(Corpus(str(root)))
        except ValueError as error:
            return str(error).removeprefix(f"{root}/")
        raise AssertionError("the door opens it")


def largest_shard(root: Path) -> Path:
    """Its provenance."""
    return max(provenance_files(root), key=lambda path: path.stat().st_size)


def inflate_a_page(root: Path) -> None:
    """A column of texts whose page is far larger than any writer's; of all columns the same size, so that it does not
    matter which are read."""
    path = largest_shard(root)
    table = pq.read_table(path)
    for name in ("url", "source", "origin"):
        values = table[name].to_pylist()
        filler = BOMB - sum(len(value.encode()) for value in values[1:])
        made = pa.array([" " * filler, *values[1:]], pa.string())
        table = table.set_column(table.column_names.index(name), table.schema.field(name), made)
    pq.write_table(table, path, **{**PARQUET, "data_page_size": 1 << 30}, use_dictionary=False)
    assert path.stat().st_size < 1 << 20
    edit_manifest(root)


def expand_a_footer(root: Path) -> None:
    """A footer of 4 MB in which each byte stands for an item of 32 bytes and more: FileMetaData of one row group, whose
    columns have paths of 400,000 empty names, in Thrift's compact protocol."""
    names = MAX_ITEMS * 2 // 5
    path = b"\x39\xf8" + varint(names) + bytes(names)  # field 3: a list of texts
    column = b"\x3c" + path + b"\x46\x02" + b"\x26\x08" + b"\0\0"  # field 3: a struct, with 7: size, and 9: place
    group = b"\x19\xac" + column * 10 + b"\0"  # field 1: a list of ten structs
    footer = b"\x49\x1c" + group + b"\0"  # field 4: a list of one struct
    largest_shard(root).write_bytes(MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC)
    edit_manifest(root)


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def cut_an_index(root: Path) -> None:
    """An .idx without its last bytes."""
    path = Path(str(largest_shard(root)).replace(".provenance.parquet", ".idx"))
    path.write_bytes(path.read_bytes()[:-8])
    edit_manifest(root)


def break_the_seal(root: Path) -> None:
    """Another number in the manifest, and its seal as it was."""
    payload = json.loads((root / MANIFEST).read_bytes())
    payload["totals"]["tokens"] += 1
    (root / MANIFEST).write_text(json.dumps(payload, sort_keys=True, indent=1, ensure_ascii=False) + "\n")


def lie_in_a_listing(root: Path) -> None:
    """A listing with one document more than the manifest says."""
    payload = json.loads((root / MANIFEST).read_bytes())
    del payload["sha256"]
    entry = payload["domains"][0]["listings"][0]
    path = root / entry["path"]
    rows = pq.read_table(path).to_pylist()
    rows[0]["documents"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path, **PARQUET)
    entry |= checksums(path)._asdict()
    (root / MANIFEST).write_bytes(seal(payload))


def rename_a_column(root: Path) -> None:
    """Removals with a column of another name."""
    (path,) = (root / "removals").iterdir()
    table = pq.read_table(path)
    pq.write_table(table.rename_columns(["who" if name == "kept_id" else name for name in table.column_names]), path)
    edit_manifest(root)


def replace_statistics(root: Path) -> None:
    """Another statistics.json than is listed."""
    path = root / "statistics.json"
    path.write_bytes(path.read_bytes().replace(b'"documents":', b'"documents": ', 1))


def all_documents(corpus: Corpus) -> object:
    return [batch for entry in corpus.entries() for batch in corpus.provenance(entry, ["url"])]


FORGERIES: Mapping[str, Forgery] = {
    "page": Forgery(inflate_a_page, all_documents),
    "footer": Forgery(expand_a_footer, all_documents),
    "index": Forgery(cut_an_index, lambda corpus: [corpus.index_of(entry) for entry in corpus.entries()]),
    "seal": Forgery(break_the_seal, lambda corpus: corpus),
    "listing": Forgery(lie_in_a_listing, lambda corpus: corpus.load()),
    "removals": Forgery(rename_a_column, lambda corpus: list(corpus.removals())),
    "statistics": Forgery(replace_statistics, lambda corpus: corpus.read("statistics.json")),
}
