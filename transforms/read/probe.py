"""Whether the sources hold documents at all, seen from their first records, before anything runs.

A wrong format or a wrong name of a field is the commonest mistake in a recipe, and costs whole files as single dead
letters: the counts reconcile, and the corpus is empty. So each source's own readers read its first records once where
the run is planned, and what is wrong is said in one line.
"""

import codecs
import csv
import difflib
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.byte_source import ByteSource, MemberStream, open_source
from refinery.transforms.read.delimited import DELIMITERS
from refinery.transforms.read.jsonl import BOM, parse_json
from refinery.transforms.read.parquet import DOCUMENT_COLUMNS
from refinery.transforms.read.plan import LimitParams, ReadTask
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.values.dialects import first_rows, propose_dialect, settle_dialect

FILES = 3  # of one source and format
RECORDS = 100  # of a file
HEAD = 1 << 20  # decompressed bytes of a file that are looked at to say what it is
SHOWN = 12  # fields that are listed
USUAL_FIELDS = ("text", "content", "raw_content", "body", "document", "markdown", "html", "article")

TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_null,
)

# First bytes of files, decompressed -> what they are.
KINDS = {
    b"PAR1": "a Parquet file",
    b"WARC/": "a WARC file",
    b"filedesc:": "an ARC file",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\xfd7zXZ": "an xz file",
    b"BZh": "a bzip2 file",
    b"SQLite format 3": "an SQLite data base",
    b"ARROW1": "an Arrow file",
    b"\x7fELF": "a program",
}


CARRIAGE_RETURNS = "its lines end in carriage returns alone, line feeds are needed: `tr '\\r' '\\n'` makes that of it"

NO_DOCUMENT = "\0"  # stands for what was seen, in a line about it

# Format -> how its files begin.
STARTS = {"parquet": b"PAR1", "documents": b"PAR1", "warc": b"WARC/", "wet": b"WARC/", "arc": b"filedesc:"}


def probe_sources(tasks: Sequence[ReadTask], limits: LimitParams) -> dict[str, str]:
    """Source -> one line about what is wrong with it, for the sources whose first files hold no document.

    Of each source and format, up to three files that are not empty are read by the source's own reader up to their
    100th record, until one is a document, or left out for a reason that says nothing about the source (a crawler's
    notes, an image, too large). Raises OSError as the storage does. Cost: usually one open and the first blocks of one
    file of each source and format, remote ones too; damaged files are read on for as long as their reader looks for a
    next record.
    """
    groups: dict[tuple[str, str], dict[str, ReadTask]] = {}
    for task in tasks:
        whole = replace(task, part=0, parts=1, sample=1.0)
        groups.setdefault((task.source, task.format), {}).setdefault(task.path, whole)
    found: dict[str, list[str]] = {}
    for (source, _), files in groups.items():
        if problem := _probe(list(files.values()), limits):
            found.setdefault(source, []).append(problem)
    formats = Counter(source for source, _ in groups)
    return {source: "; ".join(lines) for source, lines in found.items() if len(lines) == formats[source]}


def _probe(files: Sequence[ReadTask], limits: LimitParams) -> str:
    """What is wrong with the files of one format; "" for nothing."""
    filled = [task for task in files if task.size]
    if not filled:
        return f"{files[0].path} is empty (0 bytes)" if len(files) == 1 else f"all {len(files):,} files are empty"
    seen: Counter[str] = Counter()
    for task in filled[:FILES]:
        if task.format in DELIMITERS and task.dialect == "auto" and (problem := _other_dialect(task)):
            return problem
        for record in islice(_records(task, limits), RECORDS):
            if isinstance(record, RawDocument) or (isinstance(record, Skipped) and record.reason != "empty"):
                return ""
            seen[record.reason if isinstance(record, Skipped) else record.error] += 1
    return _explain(filled[0], seen)


def _records(task: ReadTask, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """As the pipeline has them: a reader that gives up costs the rest of its file, storage that fails is raised."""
    try:
        yield from read_task(task, limits)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - as in PerFile
        yield Damaged(type(error).__name__, task.origin(0))


# --- what is wrong, in words ----------------------------------------------------------------------------------------


def _explain(task: ReadTask, seen: Counter[str]) -> str:
    if not seen:
        return f"{task.path} holds no record"
    with open_source(task.path) as source:
        line = EXPLAIN.get(task.format, _explain_other)(task, source)
    total = sum(seen.values())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in seen.most_common(3))
    what = "the first record is no document" if total == 1 else f"none of the first {total:,} records is a document"
    return (line or NO_DOCUMENT).replace(NO_DOCUMENT, f"{task.path}: {what}: {reasons}")


def _explain_json(task: ReadTask, source: ByteSource) -> str:
    head = first_bytes(source)
    if is_utf16(head):
        return _explain_other(task, source)
    lines = head.split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    if b"\r" in first.strip() and parse_json(first.strip().split(b"\r")[0]) is not None:
        return f"{task.path}: {CARRIAGE_RETURNS}"
    value = parse_json(first)
    if isinstance(value, dict):
        if task.text_field in value or "." in task.text_field:
            kind = type(value.get(task.text_field)).__name__ if task.text_field in value else ""
            return "" if kind in ("", "str", "NoneType") else f"{_field(task)} is {json_kind(kind)}, text is needed"
        return f"{_field(task)} is not there, there are {_listed(list(value))}{_nearest(task, value)}"
    if head.lstrip().startswith(b"["):
        return (
            f"{task.path} is a JSON array, one JSON object a line is needed (JSON Lines): "
            "`jq -c '.[]' FILE > FILE.jsonl` makes that of it"
        )
    if first.startswith(b"{"):
        several = first.rstrip().endswith((b"{", b",", b"["))
        if several:
            return f"{task.path}: a JSON object over several lines, one object a line is needed"
        is_whole = len(lines) > 1 or len(head) < HEAD
        return f"{NO_DOCUMENT}; the first line is no JSON: {_json_problem(first)}" if is_whole else NO_DOCUMENT
    if value is not None:
        return f"{task.path}: its first line is {json_kind(type(value).__name__)}, one JSON object a line is needed"
    return _explain_other(task, source)


def _json_problem(line: bytes) -> str:
    """What Python's reader says of a line that is no JSON, and where."""
    try:
        json.loads(line.decode())
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} is not UTF-8"
    except json.JSONDecodeError as error:
        return f"column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):  # of enormous numbers and depths
        pass
    return "nested too deep, or with a number too long"


def _explain_parquet(task: ReadTask, source: ByteSource) -> str:
    try:
        schema = pq.ParquetFile(source.file).schema_arrow
    except (OSError, ValueError):  # pyarrow's errors are subclasses of these
        return _explain_other(task, source)
    columns = {field.name: f"{safe(field.name)} ({field.type})" for field in schema}
    texts = [field.name for field in schema if any(is_text(_values(field.type)) for is_text in TEXTS)]
    if task.format == "documents":
        lacks = [name for name in DOCUMENT_COLUMNS if name not in columns]
        return f"{task.path} is not documents/ of an earlier run: no column {lacks[0]}" if lacks else ""
    if task.text_field in columns:
        return "" if task.text_field in texts else f"{_field(task)} holds no text: {columns[task.text_field]}"
    if task.text_field.partition(".")[0] in columns:
        return ""
    return f"{_field(task)} is not there, there are {_listed(list(columns.values()))}{_nearest(task, texts)}"


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _explain_delimited(task: ReadTask, source: ByteSource) -> str:
    head = first_bytes(source)
    if (kind := kind_of(source)) != "plain text":
        return f"{task.path} is not {_named(task.format)}: it looks like {kind}"
    if b"\r" in head.strip() and b"\n" not in head:
        return f"{task.path}: {CARRIAGE_RETURNS}"
    delimiter, is_cut = DELIMITERS[task.format], len(head) >= HEAD
    dialect = settle_dialect(head, task.dialect, delimiter, is_cut)
    if dialect == "rfc4180" and (problem := _open_quote(head.decode("utf-8", "replace"), delimiter, is_cut)):
        return f"{task.path}: {problem}"
    rows = first_rows(head, dialect, delimiter, is_cut)
    header = next((row for row, _ in rows if row), [])
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        return f"{task.path}: the header has the column {safe(twice[0][:60])!r} twice"
    if task.text_field in header:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head, not is_cut)
        except UnicodeDecodeError:
            return f"{task.path} is not in UTF-8: `iconv -f LATIN1 -t UTF-8`, or from what it is in, makes that of it"
        wrong = next(
            ((row, line) for row, line in islice(rows, RECORDS) if row is None or len(row) != len(header)), None
        )
        if wrong is None:
            return ""
        row, line = wrong
        what = "is none: text stands behind a closing quote" if row is None else f"has {len(row)}"
        return f"{task.path}: the header has {len(header)} fields, the row that ends in line {line} {what}"
    other = next((d for d in (",", "\t", ";", "|") if d != delimiter and header and d in header[0]), "")
    between = f"; columns are parted by {delimiter!r}, these look like {other!r}" if other and len(header) == 1 else ""
    near = "" if between else _nearest(task, header)
    return f"{_field(task)} is not in the header, which has {_listed(header)}{between}{near}"


def _other_dialect(task: ReadTask) -> str:
    """That the file's first rows are all rows if they are read in another dialect, and not in that of such files."""
    with open_source(task.path) as source:
        head = first_bytes(source)
    dialect, faults = propose_dialect(head, DELIMITERS[task.format], len(head) >= HEAD)
    if dialect == "auto":
        return ""
    return (
        f"{task.path}: {faults:,} of the first rows cannot be read as {_named(task.format)} is usually written, and "
        f"every one can with `dialect: {dialect}`: set it (or `dialect: rfc4180`, to lose them)"
    )


def _open_quote(text: str, delimiter: str, is_cut: bool) -> str:
    """Where a quote opens that takes the rest of the file, or of its first MiB, into one field; "" for nowhere."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins, before = 1, csv.field_size_limit(2 * HEAD)
    try:
        for row in islice(rows, RECORDS):
            begins = rows.line_num + 1
            if is_cut and row and begins > 2:  # a row that goes on behind what was read is none of these
                return ""
    except csv.Error as error:
        if str(error) == "unexpected end of data":  # other quotes out of place are no matter to the reader
            closed = "is not closed in its first MiB" if is_cut else "is never closed"
            return f"a quote that opens in the row of line {begins} {closed}"
    finally:
        csv.field_size_limit(before)
    return ""


def _explain_other(task: ReadTask, source: ByteSource) -> str:
    kind = kind_of(source)
    if KINDS.get(STARTS.get(task.format, b""), "-") == kind:
        return f"{task.path} is damaged, or was cut off: it begins like {kind}, and cannot be read"
    return f"{task.path} is not {_named(task.format)}: it looks like {kind}"


EXPLAIN = {
    "jsonl": _explain_json,
    "parquet": _explain_parquet,
    "documents": _explain_parquet,
    "csv": _explain_delimited,
    "tsv": _explain_delimited,
}


def _field(task: ReadTask) -> str:
    return f"text_field: {task.text_field!r} given, which in {task.path}"


def _nearest(task: ReadTask, names: Sequence[str] | dict[str, object]) -> str:
    near = difflib.get_close_matches(task.text_field, list(names), 1)
    near = near or [name for name in USUAL_FIELDS if name in names]
    near = near or (list(names) if len(names) == 1 else [])
    return f"; did you mean {safe(near[0])}?" if near else ""


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(safe(name[:60]) for name in names[:SHOWN]) + more


def _named(form: str) -> str:
    words = {"jsonl": "JSON Lines", "parquet": "Parquet", "documents": "Parquet"}
    return words.get(form, f"a {form.upper()} file")


def json_kind(name: str) -> str:
    """Python's name of a type as JSON has it."""
    return {
        "list": "an array",
        "dict": "an object",
        "str": "a text",
        "bool": "true or false",
        "NoneType": "null",
    }.get(name, "a number")


def first_bytes(source: ByteSource) -> bytes:
    """About the first MiB of a file, decompressed as far as it can be, without a byte order mark."""
    stream, data = MemberStream(source), b""
    while len(data) < HEAD and (piece := stream.read()):
        data += piece
    return data[:HEAD].removeprefix(BOM)


def is_utf16(data: bytes) -> bool:
    """Whether these first bytes begin with UTF-16's mark, or every other one, as a rule, is zero."""
    zeros = [data[:512][start::2].count(0) for start in (0, 1)]
    return data[:2] in (b"\xff\xfe", b"\xfe\xff") or (not min(zeros) and max(zeros) * 3 > len(data[:512]))


def kind_of(source: ByteSource) -> str:
    """What a file is by its first bytes."""
    raw, data = source.head(0, 16), first_bytes(source)
    for start, name in KINDS.items():
        if raw.startswith(start) or data.startswith(start):
            return name
    if is_utf16(data):
        return "text in UTF-16, UTF-8 is needed: `iconv -f UTF-16 -t UTF-8` makes that of it"
    text = data.lstrip()[:512]
    if not text:
        return "a damaged or empty compressed file"
    if text[:1] in (b"{", b"["):
        return "JSON"
    if text[:1] == b"<":
        return "HTML or XML"
    sample = data[:4096]
    printable = sum(byte >= 32 or byte in b"\t\r\n" for byte in sample) / len(sample)
    return "plain text" if b"\0" not in sample and printable > 0.95 else "binary data"
