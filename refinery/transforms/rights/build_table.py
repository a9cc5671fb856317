"""A table of rule_table.py from rows, by an external sort: memory is bounded by a part of the rows, never all of them.

1. Every row becomes 23 bytes in one of PARTS temporary files, by the first bits of its key, and its text, unless it was
   written a moment ago, a record in one of PARTS others, by the first bits of its hash.
2. Part by part: rows sorted by key, day and order, of each day the one that counts, of equal ones in a row the first.
   A day on which nothing answered counts only where no answer is older (RFC 9309, section 2.3.1.4: a crawler may go on
   with the copy that it has).
3. Part by part: texts sorted by hash, each once.

The same rows in any order give the same bytes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import hash64
from refinery.transforms.rights.rule_rows import KINDS, UNREACHABLE, BadRow, RuleRow
from refinery.transforms.rights.rule_table import (
    ALIGN,
    BLOCK,
    MAGIC,
    SUMS,
    TYPES,
    VERSION,
    header_checksum,
    site_key,
)

PARTS, SHIFT = 64, np.uint64(58)  # of 10^8 rows each has 36 MB; a power of two, and what is right of its bits
BATCH = 1 << 16  # rows held before they are written
PER_BUCKET = 64  # keys
RECENT = 1 << 16  # hashes of texts that are known to be written
BUFFER = 1 << 16  # bytes that each temporary file holds back
CODES = 3  # of `says` that are not text

ROW = np.dtype([("key", "<u8"), ("says", "<u8"), ("order", "<u4"), ("day", "<u2"), ("kind", "u1")])


@dataclass
class Built:
    """What was counted. rows: taken, by kind. problems: rows that were left out, by what is wrong. overruled: rows of a
    day that another one of the same host and kind speaks for."""

    rows: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    overruled: int = 0
    entries: int = 0
    texts: int = 0
    newest: int = 0


def build_table(rows: Iterable[RuleRow | BadRow], target: Path) -> Built:
    """Write the table of these rows to `target`. Disk: 23 bytes a row and twice the texts, beside the table.

    Raises ValueError where there is nothing to write, OSError for the disk.
    """
    built = Built()
    with TemporaryDirectory(prefix=".opt-outs-", dir=target.parent) as folder, ExitStack() as stack:
        here = Path(folder)

        def files(name: str) -> list[BinaryIO]:
            return [stack.enter_context((here / f"{name}-{part}").open("w+b", BUFFER)) for part in range(PARTS)]

        row_files, text_files = files("rows"), files("texts")
        _spill(rows, row_files, text_files, built)
        if not built.rows:
            found = ", ".join(f"{count} {name}" for name, count in sorted(built.problems.items()))
            raise ValueError(f"rows: none that counts ({found or 'nothing was read'})")
        sections: dict[str, BinaryIO] = {name: stack.enter_context((here / name).open("w+b")) for name in TYPES}
        _sort_rows(row_files, sections, built)
        _sort_texts(text_files, sections, built)
        _assemble(sections, target, built)
    return built


def _spill(rows: Iterable[RuleRow | BadRow], files: list[BinaryIO], texts: list[BinaryIO], built: Built) -> None:
    batch: list[tuple[int, int, int, int, int]] = []
    recent: dict[int, None] = {}

    @lru_cache(maxsize=1 << 12)
    def keep(text: str) -> int:
        key = hash64("opt-out-text", text)
        key += CODES if key < CODES else 0
        if key not in recent:
            recent[key] = None
            if len(recent) > RECENT:
                del recent[next(iter(recent))]
            data = text.encode()
            texts[key >> int(SHIFT)].write(key.to_bytes(8, "little") + len(data).to_bytes(8, "little") + data)
        return key

    def flush() -> None:
        table = np.array(batch, ROW)
        parts = table["key"] >> SHIFT
        for part in np.unique(parts).tolist():
            files[part].write(table[parts == part].tobytes())
        batch.clear()

    for row in rows:
        if isinstance(row, BadRow):
            built.problems[row.problem] += 1
            continue
        built.rows[KINDS[row.kind]] += 1
        says = row.says if isinstance(row.says, int) else keep(row.says)
        batch.append((site_key(row.kind, row.site), says, row.order, row.day, row.kind))
        if len(batch) == BATCH:
            flush()
    flush()


def _sort_rows(files: list[BinaryIO], sections: dict[str, BinaryIO], built: Built) -> None:
    for file in files:
        file.seek(0)
        rows = np.frombuffer(file.read(), ROW)
        file.truncate(0)
        rows = rows[np.lexsort((rows["says"], rows["order"], rows["day"], rows["key"]))]
        if len(rows):
            built.newest = max(built.newest, int(rows["day"].max()))
        kept = _last_of_day(rows)
        built.overruled += len(rows) - len(kept)
        kept = _changes(kept)
        built.entries += len(kept)
        for name, column in (("keys", "key"), ("days", "day"), ("kinds", "kind"), ("says", "says")):
            sections[name].write(np.ascontiguousarray(kept[column]).tobytes())


def _last_of_day(rows: NDArray[Any]) -> NDArray[Any]:
    """Of sorted rows the last one of each key and day."""
    is_last = np.ones(len(rows), np.bool_)
    is_last[:-1] = (rows["key"][1:] != rows["key"][:-1]) | (rows["day"][1:] != rows["day"][:-1])
    return rows[is_last]


def _changes(rows: NDArray[Any]) -> NDArray[Any]:
    """Of sorted rows those that say something else than the one before them of the same key."""
    same_key = np.zeros(len(rows), np.bool_)
    same_key[1:] = rows["key"][1:] == rows["key"][:-1]
    # A day without an answer that an older row precedes says nothing; by how rows are sorted, what is before it may be
    # such a day itself, of which the first alone may have no older answer.
    rows = rows[~(same_key & (rows["says"] == UNREACHABLE))]
    is_change = np.ones(len(rows), np.bool_)
    is_change[1:] = (rows["key"][1:] != rows["key"][:-1]) | (rows["says"][1:] != rows["says"][:-1])
    return rows[is_change]


def _sort_texts(files: list[BinaryIO], sections: dict[str, BinaryIO], built: Built) -> None:
    at = 0
    sections["starts"].write(bytes(8))
    for file in files:
        file.seek(0)
        found: dict[int, bytes] = {}
        while head := file.read(16):
            key, data = int.from_bytes(head[:8], "little"), file.read(int.from_bytes(head[8:], "little"))
            if found.setdefault(key, data) != data:
                raise ValueError("rows: two different files have one hash; leave one of them out")
        file.truncate(0)
        built.texts += len(found)
        for key in sorted(found):
            at += len(found[key])
            sections["texts"].write(key.to_bytes(8, "little"))
            sections["starts"].write(at.to_bytes(8, "little"))
            sections["bodies"].write(found[key])


def _assemble(sections: dict[str, BinaryIO], target: Path, built: Built) -> None:
    bits = max(1, (built.entries // PER_BUCKET).bit_length())
    sections["keys"].flush()
    keys = np.memmap(sections["keys"].name, np.uint64, "r") if built.entries else np.empty(0, np.uint64)
    step = 1 << 20
    counts = np.zeros(1 << bits, np.uint64)
    for begin in range(0, len(keys), step):
        part, number = np.unique(keys[begin : begin + step] >> np.uint64(64 - bits), return_counts=True)
        counts[part.astype(np.int64)] += number.astype(np.uint64)
    sections["buckets"].write(bytes(8) + np.cumsum(counts, dtype=np.uint64).tobytes())
    offset, places, digest = ALIGN, dict[str, list[int]](), hashlib.sha256()
    for name, file in sections.items():
        size = file.seek(0, 2)
        for chunk in _chunks(file):
            digest.update(chunk)
        places[name] = [offset, size]
        offset += -(-size // ALIGN) * ALIGN
    sums = b"".join(_block_sums(sections.values()))
    header: dict[str, Any] = {
        "version": VERSION,
        "bits": bits,
        "entries": built.entries,
        "texts": built.texts,
        "newest": built.newest,
        "rows": dict(sorted(built.rows.items())),
        "sections": {**places, SUMS: [offset, len(sums)]},
        "blocks": [ALIGN, offset],
        "sums_crc32c": google_crc32c.value(sums),
        "sha256": digest.hexdigest(),
    }
    data = json.dumps(header, sort_keys=True).encode()
    with target.open("xb") as out:
        out.write(MAGIC + len(data).to_bytes(8, "little") + data + header_checksum(data))
        for name, file in sections.items():
            out.seek(places[name][0])
            for chunk in _chunks(file):
                out.write(chunk)
        out.seek(offset)
        out.write(sums)
        out.truncate(offset + -(-len(sums) // ALIGN) * ALIGN)


def _block_sums(files: Iterable[BinaryIO]) -> Iterator[bytes]:
    """The checksums of the blocks of these files, one behind the other, each filled up with zeros to a whole block."""
    for file in files:
        for chunk in _chunks(file):
            filled = chunk.ljust(-(-len(chunk) // BLOCK) * BLOCK, b"\0")
            for at in range(0, len(filled), BLOCK):
                yield google_crc32c.value(filled[at : at + BLOCK]).to_bytes(4, "little")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(1 << 24):
        yield chunk
