"""Which field of a source's records holds the text, where the recipe does not say: decided once, when a run is planned.

The default (`text`) is used wherever a record has it. Where none has it, the one field of a usual name that holds text
is used (usual_fields.py). What is not clear is refused: a wrong guess would turn whole files into dead letters.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from refinery.transforms.core.answers import Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.byte_source import open_source
from refinery.transforms.read.explain import RECORDS, listed
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import LimitParams, ReadTask

FILES = 8  # of a source that are looked at, spread over its list
NONE_KNOWN: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Seen:
    """What the first records of a file have. names: their fields. texts: those of them that hold text and have a usual
    name. has_default: whether the field that is read without a setting is there."""

    path: str
    names: tuple[str, ...]
    texts: tuple[str, ...]
    has_default: bool

    @property
    def shown(self) -> str:
        """The file and its fields, for messages."""
        return f"{self.path} has {listed(self.names)}"


def choose_text_fields(
    sources: Iterable[SourceParams],
    tasks: Sequence[ReadTask],
    limits: LimitParams,
    known: Mapping[str, str] = NONE_KNOWN,
) -> dict[str, str]:
    """Source -> field that holds the text, for the sources that name none and whose records lack the default one.

    tasks: of `plan_sources`. known: what a run has settled before; its sources are not looked into again. Raises
    ValueError, a line a source, where several fields may be meant, or files differ; OSError as the storage does.
    Cost: for a source that names no field, the first records of up to 8 files.
    """
    found: dict[str, str] = {}
    problems = []
    for source in sources:
        if not source.enabled or "text_field" in source.model_fields_set:
            continue
        default = default_field(source)
        if source.name in known:
            found |= {source.name: known[source.name]} if known[source.name] != default else {}
            continue
        looked_at = look_into(source, [task for task in tasks if task.source == source.name], limits)
        names = list(dict.fromkeys(name for seen in looked_at for name in seen.texts))
        if problem := _problem(default, names, looked_at):
            problems.append(f"source {source.name}: {problem}")
        elif names:
            found[source.name] = names[0]
    if problems:
        raise ValueError("\n".join(problems))
    return found


def with_text_fields(tasks: Iterable[ReadTask], chosen: Mapping[str, str]) -> list[ReadTask]:
    """The tasks of sources that were chosen a field for, with it; the others as they are."""
    return [replace(task, text_field=chosen.get(task.source, task.text_field)) for task in tasks]


def field_line(field: str) -> str:
    """What is said of a field that was found."""
    return f"text_field: {field} (found; the recipe names none)"


def settle_tasks(sources: Iterable[SourceParams], tasks: Sequence[ReadTask], limits: LimitParams) -> list[ReadTask]:
    """The tasks, each with the field that `choose_text_fields` finds for its source. Raises what that raises."""
    return with_text_fields(tasks, choose_text_fields(sources, tasks, limits))


def default_field(source: SourceParams) -> str:
    """The field that such a source reads where its recipe names none."""
    return str(type(source).model_fields["text_field"].default)


def look_into(source: SourceParams, tasks: Sequence[ReadTask], limits: LimitParams) -> list[Seen]:
    """What the records of some of a source's files have; of files that are empty, damaged or without named fields
    nothing is said."""
    files = {task.path: replace(task, part=0, parts=1, sample=1.0, cap=None) for task in tasks if task.size}
    named = [files[path] for path in sorted(files) if find_reader(files[path].format).names is not None]
    chosen = _spread(named)
    if any(is_remote(task.place) for task in chosen):
        with ThreadPoolExecutor(FILES, "refinery-fields") as pool:
            seen = list(pool.map(lambda task: look_at(task, source, limits), chosen))
    else:
        seen = [look_at(task, source, limits) for task in chosen]
    return [each for each in seen if each.names]


def look_at(task: ReadTask, source: SourceParams, limits: LimitParams) -> Seen:
    """What the first records of one file have."""
    names = first_names(task, limits)
    default = default_field(source)
    has_default = default in names
    usual = [] if has_default else [name for name in source.TEXT_FIELDS if name in names and name != default]
    return Seen(task.path, names, tuple(name for name in usual if holds_text(task, name, limits)), has_default)


def first_names(task: ReadTask, limits: LimitParams) -> tuple[str, ...]:
    """Names of the fields of a file's first records, in their order; none of a file that cannot be read. Raises OSError
    where the storage fails."""
    find_names = find_reader(task.format).names
    if find_names is None:
        return ()
    with open_source(task.place, task.size, task.version, limits.max_window_bytes, payer=task.payer) as source:
        return tuple(find_names(task, source, limits))


def holds_text(task: ReadTask, name: str, limits: LimitParams) -> bool:
    """Whether one of a file's first records has a text in that field."""
    records = islice(read_task(replace(task, text_field=name), limits), RECORDS)
    return any(
        isinstance(each, RawDocument) or (isinstance(each, Skipped) and each.reason != "empty") for each in records
    )


def _spread(tasks: Sequence[ReadTask]) -> list[ReadTask]:
    """At most FILES of them, the first and the last among them."""
    if len(tasks) <= FILES:
        return list(tasks)
    return [tasks[(len(tasks) - 1) * number // (FILES - 1)] for number in range(FILES)]


def _problem(default: str, names: Sequence[str], looked_at: Sequence[Seen]) -> str:
    """Why no field can be chosen; "" where one can, or where there is nothing to choose from."""
    other = next((seen for seen in looked_at if seen.texts), None)
    usual = next((seen for seen in looked_at if seen.has_default), None)
    if other is None:
        return ""
    if usual is not None:
        return (
            f"text_field: none given, and its files differ: {usual.path} has {safe(default)}, {other.shown}: make two "
            "sources of them, each with its `text_field`"
        )
    if len(names) > 1:
        return (
            f"text_field: none given, and {' and '.join(names)} hold texts, but there is no {safe(default)} "
            f"({other.shown}): set `text_field` to one of them"
        )
    return ""
