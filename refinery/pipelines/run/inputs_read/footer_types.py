"""The types of the fields that a source keeps of Parquet files, from the footers of all of them, before the run."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from refinery.loader.format.kept_columns import COLUMN_NAME, plain_type
from refinery.transforms.read.byte_source import open_source
from refinery.transforms.read.formats.parquet import PARQUET, read_schema
from refinery.transforms.read.task import LimitParams, ReadTask

AT_ONCE = 16  # footers, in threads


def find_types(tasks: Iterable[ReadTask], limits: LimitParams) -> dict[str, Any]:
    """Field -> its type as plain data, of the fields that one source keeps, in the order of its files. tasks: the
    source's. Left out are columns of types without such a form, and of names that no column may have.

    Raises ValueError, a line for each column of which files disagree; OSError where the storage fails. Cost: the footer
    of each file, one request or two.
    """
    files = {task.path: task for task in tasks if task.format == PARQUET.name and task.size}
    with ThreadPoolExecutor(AT_ONCE, "refinery-footers") as pool:
        schemas = list(pool.map(lambda task: _schema(task, limits), files.values()))
    found: dict[str, tuple[Any, str]] = {}
    problems = []
    for (path, task), schema in zip(files.items(), schemas, strict=True):
        named = {task.text_field, task.url_field, *task.meta_fields}
        for field in schema:
            wanted = field.name not in named if task.fields == "keep" else field.name in task.fields
            plain = _plain(field.type) if wanted and COLUMN_NAME.fullmatch(field.name) else None
            if plain is None:
                continue
            known, first = found.setdefault(field.name, (plain, path))
            if known != plain:
                problems.append(
                    f"source {task.source}: fields: column {field.name!r:.80} is {plain} in {path}, {known} in "
                    f"{first}; make two sources, or list the other fields"
                )
    if problems:
        raise ValueError("\n".join(dict.fromkeys(problems)))
    return {name: plain for name, (plain, _) in found.items()}


def _schema(task: ReadTask, limits: LimitParams) -> pa.Schema:
    with open_source(task.place, task.size, task.version, limits.max_window_bytes, payer=task.payer) as source:
        return read_schema(task, source)


def _plain(kind: pa.DataType) -> Any:
    try:
        return plain_type(kind)
    except ValueError:
        return None
