"""Benchmarks as files: one item per record of JSON lines or Parquet, or per paragraph of a text file."""

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pydantic import Field, model_validator

from refinery.transforms.core.params import Params
from refinery.transforms.core.resources import local_copy
from refinery.transforms.core.safe_text import printable
from refinery.transforms.filter.ngram_index import Item

# Fields that hold a question in the evaluation sets of the lm-evaluation-harness and of HELM.
QUESTIONS = frozenset(
    (
        *("context", "ctx", "goal", "input", "instruction", "passage", "premise", "problem", "problem_statement"),
        *("prompt", "query", "question", "sentence", "sentence1", "sentence2", "startphrase", "story", "text"),
    )
)
IDS = ("id", "task_id", "question_id", "qid", "uid", "idx", "ind", "name")  # the first of these that a record has
SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".txt", ".md")
MAX_ID_CHARS = 80  # of an item's name
MAX_BENCHMARKS = 10_000  # BIG-Bench, MMLU and their like have some hundred parts
MAX_DEPTH = 20  # of values in a record that are looked at


class BenchmarkParams(Params):
    """A file of items that no document may hold. A path alone stands for its defaults."""

    path: Annotated[str, Field(min_length=1)]
    """JSON lines, Parquet, or text with an item per paragraph (`.jsonl`, `.json`, `.parquet`, `.txt`; also `.gz` and
    `.zst`); local, `gs://`, `s3://` or
    `hf://datasets/ORG/NAME@COMMIT/FILE`"""
    name: Annotated[str, Field(pattern=r"^[\w.-]*$", max_length=80)] = ""
    """its name in reports; by default the name of the file"""
    name_field: str = ""
    """field of a record that names its benchmark, for files of several"""
    id_field: str = ""
    """field that names an item, by default `id`, `task_id` or similar, otherwise its number"""
    fields: tuple[str, ...] = ()
    """fields that are searched, the first being the question; by default every field with text"""

    @model_validator(mode="before")
    @classmethod
    def _read_path(cls, data: Any) -> Any:
        return {"path": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _check(self) -> "BenchmarkParams":
        if not plain_path(self.path).endswith(SUFFIXES):
            raise ValueError(f"path: {self.path!r} given, a name that ends in {', '.join(SUFFIXES)} is allowed")
        return self


def plain_path(path: str) -> str:
    """A path in lower case, without the suffix of a compression."""
    return path.lower().removesuffix(".gz").removesuffix(".zst")


class Benchmarks:
    """The items of several files, and what the benchmarks are called: a name's place is its number."""

    def __init__(self, files: tuple[BenchmarkParams, ...]) -> None:
        self.files = files
        self.names: dict[str, int] = {}

    def read(self) -> Iterator[Item]:
        """Every item, in order. Memory: a record, or a row group of a Parquet file; a file that is JSON as a whole, all
        of it. Raises ValueError, one line, for a file that is missing or damaged or has no items.
        """
        for file in self.files:
            try:
                with local_copy(file.path) as local:
                    count = 0
                    for count, record in enumerate(read_records(local, plain_path(file.path)), 1):
                        yield self.item(record, file, count)
            except (OSError, EOFError, zlib.error, zstandard.ZstdError, pa.ArrowException, ValueError) as error:
                said = " ".join(str(error).split())[:200]
                raise ValueError(f"benchmarks: {file.path!r} given, which cannot be read ({said})") from error
            if not count:
                raise ValueError(f"benchmarks: {file.path!r} given, which has no items")

    def item(self, record: Mapping[str, Any], file: BenchmarkParams, count: int) -> Item:
        """A record as an item. Raises ValueError for a record without a field that is named."""
        for name in (*file.fields, *filter(None, (file.id_field, file.name_field))):
            if name not in record:
                raise ValueError(f"item {count} has no field {name!r}")
        own = str(record[file.name_field]) if file.name_field else ""
        stem = Path(plain_path(file.path)).stem
        benchmark = printable(own.replace("/", "-").replace("\n", " "))[:MAX_ID_CHARS] or file.name or stem
        number = self.names.setdefault(benchmark, len(self.names))
        if number >= MAX_BENCHMARKS:
            raise ValueError(f"name_field: {file.name_field!r} given, which has more than {MAX_BENCHMARKS} values")
        ids = (file.id_field,) if file.id_field else IDS
        id_ = next((record[name] for name in ids if isinstance(record.get(name), (str, int))), count)
        texts = {name: tuple(strings(record[name])) for name in file.fields or record}
        questions = {*file.fields[:1]} if file.fields else {name for name in texts if name.lower() in QUESTIONS}
        return Item(
            benchmark=number,
            name=printable(" ".join(str(id_).split()))[:MAX_ID_CHARS] or str(count),
            questions=tuple(text for name, found in texts.items() if name in questions for text in found),
            others=tuple(text for name, found in texts.items() if name not in questions for text in found),
        )


def strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in a value, at any depth up to MAX_DEPTH: the choices of a question are a list. Lone surrogates are
    replaced."""
    if isinstance(value, str):
        yield value.encode("utf-8", "replace").decode()
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        for inner in value.values():
            yield from strings(inner, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < MAX_DEPTH:
        for inner in value:
            yield from strings(inner, depth + 1)


def read_records(local: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """Records of a file; `name` without the suffix of its compression says what it is, its first bytes how it is
    compressed. Raises ValueError that names the line."""
    if name.endswith(".parquet"):
        with pq.ParquetFile(local) as table:
            for batch in table.iter_batches(1024, use_threads=False):
                yield from batch.to_pylist()
        return
    with open(local, "rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        stream: Any = raw
        if magic[:2] == b"\x1f\x8b":
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == b"\x28\xb5\x2f\xfd":
            stream = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))
        if name.endswith((".txt", ".md")):
            for paragraph in stream.read().decode("utf-8-sig").split("\n\n"):
                if paragraph.strip():
                    yield {"text": paragraph}
        elif name.endswith(".json"):
            yield from json_records(stream.read())
        else:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield json_record(line, f"line {number}")


def json_record(data: bytes, where: str) -> Mapping[str, Any]:
    try:
        record = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{where}: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{where}: {type(record).__name__} found, an object expected")
    return record


def json_records(data: bytes) -> Iterator[Mapping[str, Any]]:
    """A list of objects, or an object with one list of objects (BIG-Bench's "examples")."""
    found = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    lists = [value for value in found.values() if isinstance(value, list)] if isinstance(found, dict) else [found]
    for records in lists:
        if isinstance(records, list):
            yield from (record for record in records if isinstance(record, dict))
