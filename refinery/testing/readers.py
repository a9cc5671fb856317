"""What every reader of a format promises, as tests that a reader's author inherits."""

import gzip
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from refinery.testing.expect import expect
from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument, text_bytes
from refinery.transforms.read.at_origin import read_at
from refinery.transforms.read.lines import BLOCK, LINES
from refinery.transforms.read.own_records import check_document, check_place
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.plan import plan_source
from refinery.transforms.read.reader import Reader
from refinery.transforms.read.registry import readers
from refinery.transforms.read.sources import READ, read_task
from refinery.transforms.read.task import LimitParams, ReadTask

Outcome = RawDocument | Skipped | Damaged

WHOLE = 1 << 60  # bytes of a part that takes every file
CUTS = 12  # places at which an example is cut off
FLIPS = 20  # examples with some bytes overwritten
MOST = 200_000  # records of one example beyond its bytes, before a reader counts as one that does not end


class ReaderTests:
    """Tests of one reader. Give it a `reader` and `files`: name -> bytes of undamaged files, each with `least`
    documents or more. `source`: further keys of a source that reads them. `repeats`: whether an example, written
    several times over, is a file of its records several times, so parts of large files are tried.

    What they hold a reader to: the same bytes give the same records; every document has an origin and a position of its
    own, by which it is found again; parts give what the whole gives; a file that is cut off, damaged or no such file
    gives damage that is counted, no exception and no end without a word; limits, `sample` and `cap` are kept; reasons
    are declared. A reader that loops without an end hangs here: give pytest a timeout.
    """

    reader: ClassVar[Reader]
    source: ClassVar[Mapping[str, Any]] = {}
    least: ClassVar[int] = 3
    repeats: ClassVar[bool] = False
    limits: ClassVar[LimitParams] = LimitParams()

    def files(self) -> Mapping[str, bytes]:
        """Name -> content of the examples."""
        raise NotImplementedError("files: give name -> bytes of a few examples")

    # --- what the tests are made of ---------------------------------------------------------------------------------

    def task(self, path: Path, data: bytes, **changes: Any) -> ReadTask:
        """The task that reads a file with these bytes."""
        path.write_bytes(data)
        given: dict[str, Any] = {"name": "examples", "paths": (str(path),), "format": reference(self.reader)}
        options = {key: value for key, value in self.source.items() if key not in SourceParams.model_fields}
        given |= {key: value for key, value in self.source.items() if key not in options}
        given |= {"options": options} if options else {}
        (task,) = plan_source(SourceParams(**given), WHOLE)
        return replace(task, **changes)

    def read(self, task: ReadTask, limits: LimitParams | None = None) -> list[Outcome]:
        """All records of a task, each checked. Raises AssertionError for a reader that does not end."""
        most = task.size + MOST
        found = list(islice(read_task(task, limits or self.limits), most + 1))
        expect(len(found) <= most, f"{task.path}: more than {most:,} records of {task.size:,} bytes")
        reasons = {reason.name for reason in (*READ.reasons, *self.reader.reasons)}
        for record in found:
            if isinstance(record, RawDocument):
                if not self.reader.keeps_origins:
                    check_document(self.reader, record, task)
            elif not isinstance(record, Skipped | Damaged):
                expect(False, f"{record!r:.100} yielded, RawDocument, Skipped or Damaged is allowed")
            elif not self.reader.keeps_origins:
                check_place(self.reader, record, task)
            if isinstance(record, Skipped):
                expect(record.reason in reasons, f"{record.reason!r} given, a reason that is declared is needed")
        return found

    def examples(self, folder: Path) -> Iterator[tuple[ReadTask, bytes, list[Outcome]]]:
        """Each example as a task, with its bytes and its records."""
        given = self.files()
        expect(bool(given), "files: none given")
        for name, data in given.items():
            task = self.task(folder / name, data)
            yield task, data, self.read(task)

    # --- what is promised -------------------------------------------------------------------------------------------

    def test_examples_are_read(self, tmp_path: Path) -> None:
        for task, _, records in self.examples(tmp_path):
            damaged = [record for record in records if isinstance(record, Damaged)]
            expect(not damaged, f"{task.path}: {damaged[:1]} in an example, undamaged ones are needed")
            number = len(documents(records))
            expect(number >= self.least, f"{task.path}: {number} documents, {self.least} are needed")

    def test_the_same_bytes_give_the_same_records(self, tmp_path: Path) -> None:
        for task, data, records in self.examples(tmp_path):
            expect(self.read(task) == records, f"{task.path}: other records the second time")
            (tmp_path / "elsewhere").mkdir(exist_ok=True)
            moved = self.task(tmp_path / "elsewhere" / Path(task.path).name, data)
            expect(contents(self.read(moved)) == contents(records), f"{task.path}: other documents in another folder")

    def test_every_document_has_an_origin_of_its_own(self, tmp_path: Path) -> None:
        for task, _, records in self.examples(tmp_path):
            origins = [record.origin for record in documents(records)]
            expect(len(set(origins)) == len(origins), f"{task.path}: an origin of two documents")
            positions = [record.position for record in documents(records)]
            expect(positions == sorted(set(positions)), f"{task.path}: positions do not rise")

    def test_every_record_is_found_at_its_origin(self, tmp_path: Path) -> None:
        if self.reader.keeps_origins:
            return
        for task, _, records in self.examples(tmp_path):
            for record in records:
                found = read_at(task, offset_of(record), self.limits)
                expect(found == record, f"{record.origin}: {found!r:.200} there, {record!r:.200} in the file")
            expect(read_at(task, 1 << 39, self.limits) is None, f"{task.path}: a record behind the file's end")

    def test_parts_give_what_the_whole_gives(self, tmp_path: Path) -> None:
        for task, data, records in self.examples(tmp_path):
            if self.repeats or self.reader.split is LINES:  # cut between mebibytes
                task = self.task(Path(task.path), data * (3 * BLOCK // len(data) + 1))
                records = self.read(task)
            if self.reader.split.count(task, 1) == 1:
                continue
            for parts in (2, 3, 7):
                read = [self.read(replace(task, part=part, parts=parts)) for part in range(parts)]
                together = sorted((record for part in read for record in part), key=offset_of)
                expect(
                    together == records, f"{task.path}: {parts} parts give records that differ from those of the whole"
                )

    def test_compressed_files_give_the_same_documents(self, tmp_path: Path) -> None:
        for task, data, records in self.examples(tmp_path):
            if self.reader.compressed:
                packed = self.task(tmp_path / f"{Path(task.path).name}.gz", gzip.compress(data, mtime=0))
                expect(contents(self.read(packed)) == contents(records), f"{task.path}: other documents, compressed")

    def test_a_file_that_is_cut_off_keeps_what_is_before_the_cut(self, tmp_path: Path) -> None:
        """All but the last document: in some formats nothing shows that it continues."""
        for task, data, records in self.examples(tmp_path):
            whole = {record.origin: record for record in documents(records)}
            for cut in (*(len(data) * place // CUTS for place in range(CUTS)), len(data) - 1):
                for record in documents(self.read(self.task(Path(task.path), data[:cut])))[:-1]:
                    expect(whole.get(record.origin) == record, f"{record.origin}: another document, cut at {cut}")

    def test_a_compressed_file_that_is_cut_off_is_damaged(self, tmp_path: Path) -> None:
        for task, data, _ in self.examples(tmp_path):
            packed = gzip.compress(data, mtime=0)
            for cut in (len(packed) // 2, len(packed) - 1) if self.reader.compressed else ():
                records = self.read(self.task(tmp_path / f"{Path(task.path).name}.gz", packed[:cut]))
                damaged = any(isinstance(record, Damaged) for record in records)
                expect(damaged, f"{task.path}: cut off at byte {cut} of {len(packed)}, and nothing is Damaged")

    def test_what_is_no_such_file_is_said_to_be_none(self, tmp_path: Path) -> None:
        rng = random.Random(7)  # noqa: S311 - of tests
        for name, data in self.files().items():
            begun = [start + rng.randbytes(3_000) for start in self.reader.magic]
            for content in (rng.randbytes(70_000), bytes(5_000), *begun):
                records = self.read(self.task(tmp_path / name, content))
                expect(bool(records), f"{name}: {len(content):,} bytes of something else give no record at all")
            expect(not documents(self.read(self.task(tmp_path / name, b""))), f"{name}: a document in an empty file")
            for _ in range(FLIPS):
                damaged = bytearray(data)
                at = rng.randrange(len(data))
                damaged[at : at + 8] = rng.randbytes(min(8, len(data) - at))
                self.read(self.task(tmp_path / name, bytes(damaged)))

    def test_limits_are_held(self, tmp_path: Path) -> None:
        for task, _, records in self.examples(tmp_path):
            sizes = sorted(size_of(record) for record in documents(records))
            most = sizes[-1] - 1
            held = self.read(task, self.limits.replace(max_record_bytes=most))
            over = [record for record in documents(held) if size_of(record) > most]
            expect(not over, f"{task.path}: a document of more than max_record_bytes: {over!r:.200}")
            skipped = [record for record in held if isinstance(record, Skipped) and record.reason == "too-large"]
            expect(bool(skipped), f"{task.path}: nothing is too-large with max_record_bytes {most}")
            tiny = self.limits.replace(max_record_bytes=1, max_decompressed_bytes=64)
            over = [record for record in documents(self.read(task, tiny)) if size_of(record) > 1]
            expect(not over, f"{task.path}: a document of more than one byte: {over!r:.200}")

    def test_a_sample_is_the_same_share_of_the_records(self, tmp_path: Path) -> None:
        for task, _, records in self.examples(tmp_path):
            for seed in range(4):
                sampled = replace(task, sample=0.5, seed=seed)
                expected = [record for record in documents(records) if sampled.samples(record.origin)]
                found = self.read(sampled)
                expect(documents(found) == expected, f"{task.path}: sample 0.5, seed {seed}: other documents")
                left = sum(isinstance(record, Skipped) and record.reason == NOT_SAMPLED for record in found)
                missing = len(documents(records)) - len(expected)
                expect(left >= missing, f"{task.path}: {missing} documents left out, {left} counted")

    def test_a_cap_takes_the_first_documents(self, tmp_path: Path) -> None:
        for task, _, records in self.examples(tmp_path):
            for cap in (1, 2):
                found = documents(self.read(replace(task, cap=cap)))
                expect(found == documents(records)[:cap], f"{task.path}: cap {cap}: {len(found)} documents")


def reference(reader: Reader) -> str:
    """What a source calls this reader: a name of ours, or "module:NAME"."""
    if readers().get(reader.name) == reader:
        return reader.name
    for name, module in list(sys.modules.items()):
        for attribute, value in list(vars(module).items()) if module else ():
            if value is reader and name != "__main__":
                return f"{name}:{attribute}"
    raise AssertionError(f"reader {reader.name}: no module has it as a name of its own")


def documents(records: list[Outcome]) -> list[RawDocument]:
    """Those that are documents."""
    return [record for record in records if isinstance(record, RawDocument)]


def contents(records: list[Outcome]) -> list[tuple[Any, ...]]:
    """The documents, whatever their file is called."""
    found = documents(records)
    return [(doc.content, doc.is_html, doc.charset, doc.url, dict(doc.meta)) for doc in found]


def offset_of(record: Outcome) -> int:
    """The number in an origin."""
    return int(record.origin.rpartition("@")[2])


def size_of(doc: RawDocument) -> int:
    """Bytes of a document."""
    return len(doc.content) if isinstance(doc.content, bytes) else text_bytes(doc.content)
