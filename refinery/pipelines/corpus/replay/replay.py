"""A document of a run once more: its record is read at its origin, and the stages, pure functions, judge it again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from refinery.pipelines.corpus.replay.try_document import Decision, Step, Trial
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import input_digest
from refinery.pipelines.run.inputs_read.published import known_crc32c
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import Document, RawDocument, content_size
from refinery.transforms.filter.pii import PII
from refinery.transforms.filter.secrets_stage import SecretRemains, SecretsParams, TooManySecrets, redact_text
from refinery.transforms.read.at_origin import read_at
from refinery.transforms.read.find_files import find_file
from refinery.transforms.read.plan import ReadTask, plan_sources, whole_file
from refinery.transforms.read.remote.files import Found
from refinery.transforms.read.sources import READ
from refinery.transforms.read.text_fields import settle_tasks

LARGEST = 2**62  # of an offset


class NoReplay(ValueError):
    """A record that cannot be read again. One line that says why."""


@dataclass(frozen=True)
class Replay:
    """What the stages decide, the last one first lost the document or kept it. text: what that one was given, or left;
    "" where there is none, or where nobody should read it. In it credentials are redacted, whatever the recipe says,
    and personal data as it says.
    """

    origin: str
    source: str
    url: str
    decisions: tuple[Decision, ...]
    text: str = ""

    @property
    def last(self) -> Decision:
        """The decision that counts."""
        return self.decisions[-1]

    @property
    def is_kept(self) -> bool:
        """Whether no stage loses the document."""
        return self.last.outcome not in ("dropped", "dead")


def replay(recipe: Recipe, origin: str, source: str = "", inputs: Iterable[Mapping[str, Any]] | None = None) -> Replay:
    """`Replayer(recipe, inputs).replay(origin, source)`, for one document."""
    return Replayer(recipe, inputs).replay(origin, source)


class Replayer:
    """Replays documents of one recipe; models and lists are loaded once.

    inputs: those of the run as `_run.json` lists them; other files are not read, and one that has changed since is
    refused. Without them the recipe's sources say what there is. measure: whether each rule's value is found, too.
    """

    def __init__(self, recipe: Recipe, inputs: Iterable[Mapping[str, Any]] | None = None, measure: bool = True) -> None:
        self.recipe = recipe
        self.trial = Trial(recipe, measure)
        self.inputs: dict[str, list[Mapping[str, Any]]] | None = None
        if inputs is not None:
            self.inputs = {}
            for entry in inputs:
                self.inputs.setdefault(str(entry["path"]), []).append(entry)
        self.tasks: dict[tuple[str, str], ReadTask] = {}

    def replay(self, origin: str, source: str = "") -> Replay:
        """The decisions about the record at that origin (input file@offset). source: its source, where a file is in
        several. Raises NoReplay where there is no such record any more, OSError and ValueError where storage, models or
        lists fail. Cost: that of `read_at`, and of the stages.
        """
        return self.judge(*self.record(origin, source))

    def record(self, origin: str, source: str = "") -> tuple[RawDocument | Skipped | Damaged, str]:
        """What the reader gives of that record, and its source. Raises the same errors as `replay`."""
        task, offset = self.locate(origin, source)
        record = read_at(task, offset, self.recipe.limits)
        if record is None:
            raise NoReplay(f"{origin:.300}: no record begins there; `refinery trace` prints origins")
        return record, task.source

    def judge(self, record: RawDocument | Skipped | Damaged, source: str) -> Replay:
        """The decisions about what a reader gave."""
        if isinstance(record, Skipped):
            declared = next((each for each in READ.reasons if each.name == record.reason), None)
            why = f"{record.reason}: {declared.meaning}" if declared else record.reason
            lost = Decision(READ.name, "dropped", why, declared.advice if declared else "", record.size)
            return Replay(record.origin, source, record.url, (lost,))
        if isinstance(record, Damaged):
            return Replay(record.origin, source, "", (Decision(READ.name, "dead", record.error, size=record.size),))
        steps = list(self.trial.steps(record))
        read = Decision(READ.name, "kept", size=content_size(record))
        decisions = (read, *(without_quotes(step.decision) for step in steps))
        return Replay(record.origin, source, record.url, decisions, shown_text(steps, self.trial))

    def locate(self, origin: str, source: str) -> tuple[ReadTask, int]:
        """The file of an origin as a task, and the offset in it. Raises NoReplay."""
        path, at, digits = origin.rpartition("@")
        if not (path and at and digits.isascii() and digits.isdigit() and int(digits) < LARGEST):
            raise NoReplay(f"{origin!r:.300}: input file@offset is expected, as `refinery trace` prints it")
        if (path, source) not in self.tasks:
            self.tasks[path, source] = self._task(path, source)
        return self.tasks[path, source], int(digits)

    def _task(self, path: str, source: str) -> ReadTask:
        if self.inputs is None:
            planned = plan_sources(self.recipe.sources, LARGEST, self.recipe.notes())
            for task in settle_tasks(self.recipe.sources, planned, self.recipe.limits):
                if task.path == path and source in ("", task.source):
                    return replace(task, cap=None)
            raise NoReplay(f"{path!r:.300} is not an input file of the recipe; `refinery trace` prints origins")
        listed = [entry for entry in self.inputs.get(path, ()) if source in ("", entry["source"])]
        if not listed:
            raise NoReplay(
                f"{path!r:.300} is not among the inputs of the run (documents of an earlier run keep its origins: "
                "trace them there)"
            )
        params = {each.name: each for each in self.recipe.sources}.get(str(listed[0]["source"]))
        if params is None:
            raise NoReplay(f"{path!r:.300}: the recipe has no source {listed[0]['source']!r:.80}; give the run's own")
        whole = whole_file(params, unchanged(listed[0], params.requester_pays), notes=self.recipe.notes())
        return settle_tasks([params], [whole], self.recipe.limits)[0]


def without_quotes(decision: Decision) -> Decision:
    """The decision without an error's message, which may quote the document: its class, as in dead letters."""
    return replace(decision, reason=decision.reason.partition(":")[0]) if decision.outcome == "dead" else decision


def unchanged(entry: Mapping[str, Any], payer: str = "") -> Found:
    """An input of a run as it is now. payer: as of `find_file`. Raises NoReplay where it is gone, cannot be reached, or
    is another one."""
    path = str(entry["path"])
    try:
        found = find_file(path, payer)
        if found.size == entry["size"]:
            digest = found.crc32c if "://" in path else input_digest(path, found.size)
    except FileNotFoundError:
        raise NoReplay(
            f"{path:.300} no longer exists (paths are those given to the run; relative paths start at its working "
            "folder)"
        ) from None
    except (OSError, ValueError) as error:
        raise NoReplay(f"{path:.300} cannot be read: {error}") from None
    if found.size != entry["size"]:
        raise NoReplay(f"{path:.300} has changed: {found.size:,} bytes, {entry['size']:,} when the run read it")
    expected = known_crc32c(entry) if "://" in path else entry["digest"]
    if digest and expected and digest != expected:
        raise NoReplay(f"{path:.300} has changed since the run read it: its size is the same, its bytes differ")
    return found


def shown_text(steps: Sequence[Step], trial: Trial) -> str:
    """The text of a document as the last stage was given it, or left it; "" where that is none, or where the stage says
    that nobody should read it (`excerpts`)."""
    last: Any = None
    for step in steps:
        if step.after is None:
            last = step.before if step.stage.excerpts else None
        elif isinstance(step.after, Document):
            last = step.after
    if not isinstance(last, Document):
        return ""
    return redacted(last.text) if any(step.stage == PII for step in steps) else fit_to_read(last, trial)


def fit_to_read(doc: Document, trial: Trial) -> str:
    """A document's text with what any rule takes for a credential replaced, and personal data where the recipe replaces
    that; "" where the recipe drops it for that."""
    answer = trial.judge(PII, replace(doc, text=redacted(doc.text)))
    return answer.text if isinstance(answer, Document) else ""


def redacted(text: str) -> str:
    """A text with what any rule takes for a credential replaced; "" where that is most of it, or some remains."""
    try:
        return redact_text(text, SecretsParams(), set())[0]
    except (TooManySecrets, SecretRemains):
        return ""
