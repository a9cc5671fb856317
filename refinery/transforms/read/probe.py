"""Whether the sources hold documents at all, seen from their first records, before anything runs.

A wrong format or a wrong name of a field is the commonest mistake in a recipe, and costs whole files as single dead
letters: the counts reconcile, and the corpus is empty. So each source's own readers read its first records once where
the run is planned, and what is wrong is said in one line.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from refinery.transforms.core.answers import Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import open_source
from refinery.transforms.read.explain import NO_DOCUMENT, RECORDS, explain_other
from refinery.transforms.read.own_records import BadRecord
from refinery.transforms.read.registry import find_reader, is_own
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import LimitParams, ReadTask

FILES = 3  # of one source and format, with records
MOST_FILES = 100  # that are opened to find these


def probe_sources(tasks: Sequence[ReadTask], limits: LimitParams, empty: bool = False) -> dict[str, str]:
    """Source -> one line about what is wrong with it, for the sources whose first files hold no document.

    Of each source and format, up to three files that are not empty are read by the source's own reader up to their
    100th record, until one is a document, or left out for a reason that says nothing about the source (a crawler's
    notes, an image, too large; where `empty`, that it has no text). Raises OSError as the storage does. Cost: usually
    one open and the first blocks of one file of each source and format, remote ones too; damaged files are read on for
    as long as their reader looks for a next record.
    """
    groups: dict[tuple[str, str], dict[str, ReadTask]] = {}
    for task in tasks:
        whole = replace(task, part=0, parts=1, sample=1.0, may_lack_text=False)
        groups.setdefault((task.source, task.format), {}).setdefault(task.path, whole)
    found: dict[str, list[str]] = {}
    for (source, _), files in groups.items():
        if problem := _probe(list(files.values()), limits, empty):
            found.setdefault(source, []).append(problem)
    formats = Counter(source for source, _ in groups)
    return {source: "; ".join(lines) for source, lines in found.items() if len(lines) == formats[source]}


def _probe(files: Sequence[ReadTask], limits: LimitParams, empty: bool) -> str:
    """What is wrong with the files of one format; "" for nothing."""
    filled = [task for task in files if task.size]
    if not filled:
        return f"{files[0].path} is empty (0 bytes)" if len(files) == 1 else f"all {len(files):,} files are empty"
    seen: Counter[str] = Counter()
    failed = ""
    looked = 0
    for task in filled[:MOST_FILES]:
        if looked == FILES:
            break
        before = seen.total()
        check = find_reader(task.format).check
        if check and (problem := check(task)):
            return problem
        try:
            tells = _look_at(task, limits, seen, empty)
        except OSError:
            raise
        except BadRecord as error:
            return f"{task.path}: {error}"
        except Exception as error:  # noqa: BLE001 - as in PerFile: it costs the rest of the file
            failed = failed or f"{task.path}: {task.format}: {type(error).__name__}: {' '.join(str(error).split())}"
            seen[type(error).__name__] += 1
            continue
        if tells:
            return ""
        looked += seen.total() > before  # a file without any record says nothing
    return failed if failed and is_own(filled[0].format) else _explain(filled[0], seen)


def _look_at(task: ReadTask, limits: LimitParams, seen: Counter[str], empty: bool) -> bool:
    """Whether one of a file's first records is a document, or left out for a reason that says nothing about the source;
    the others are counted in `seen`. Where the reader is the user's own, it is read on: mistakes of it end the run."""
    tells = False
    try:
        for record in islice(read_task(task, limits), RECORDS):
            if isinstance(record, RawDocument) or (isinstance(record, Skipped) and (empty or record.reason != "empty")):
                tells = True
                if not is_own(task.format):
                    break
            else:
                seen[record.reason if isinstance(record, Skipped) else record.error] += 1
    except (OSError, BadRecord):
        raise
    except Exception:  # there are documents before it
        if not tells:
            raise
    return tells


# --- what is wrong, in words ----------------------------------------------------------------------------------------


def _explain(task: ReadTask, seen: Counter[str]) -> str:
    if not seen:
        return f"{task.path} holds no record"
    explain = find_reader(task.format).explain
    with open_source(task.place, task.size, task.version, payer=task.payer) as source:
        line = explain(task, source) if explain else explain_other(task, source)
    total = sum(seen.values())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in seen.most_common(3))
    what = "the first record is not a document" if total == 1 else f"none of the first {total:,} records is a document"
    return (line or NO_DOCUMENT).replace(NO_DOCUMENT, f"{task.path}: {what}: {reasons}")
