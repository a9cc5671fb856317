"""What people think of decisions: a line of JSON each, in a local file outside the run."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

VERDICTS = {"wrongly-dropped": "wrongly dropped", "wrongly-kept": "wrongly kept", "right": "right as it is"}
DEFAULT = "refinery-judgements.jsonl"
MOST_NOTE = 2_000  # characters
MOST_BYTES = 64 << 20  # of the file
MOST_LINE = 64 << 10


@dataclass(frozen=True)
class Judgement:
    """A verdict on one document. run, manifest_sha256: the version of the corpus that was looked at. outcome: what the
    run decided, "kept" or "stage: reason". measured: what rules measured in it, beside their thresholds."""

    verdict: str
    note: str
    run: str
    manifest_sha256: str
    id: str
    url: str
    source: str
    origin: str
    outcome: str
    measured: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict: {self.verdict!r:.40} given, one of {', '.join(VERDICTS)} is allowed")
        if len(self.note) > MOST_NOTE:
            raise ValueError(f"note: {len(self.note):,} characters given, up to {MOST_NOTE:,} are allowed")

    @property
    def document(self) -> tuple[str, ...]:
        """What it is about: a later judgement of the same takes the place of this one."""
        return (self.run, self.origin, self.source, "" if self.origin else self.id)


class Judgements:
    """The file of judgements at `path`. Made when the first one comes, for its owner alone; lines are only added."""

    def __init__(self, path: str, prefixes: Sequence[str]) -> None:
        self.path = Path(path)
        self._lock = Lock()
        here = self.path.resolve()
        for prefix in prefixes:
            if "://" not in prefix and here.is_relative_to(Path(prefix).resolve()):
                raise ValueError(
                    f"--judgements {path}: lies inside the run {prefix}, which holds nothing but what it wrote; "
                    "name a file elsewhere"
                )
        if not here.parent.is_dir() or here.is_dir():
            raise ValueError(f"--judgements {path}: a file in a folder that is there is allowed")

    def add(self, judgement: Judgement) -> None:
        """Write a line, whole or not at all. Raises OSError, and ValueError where the file is full."""
        line = json.dumps(asdict(judgement), ensure_ascii=True).encode() + b"\n"
        if len(line) > MOST_LINE:
            raise ValueError(f"a judgement of {len(line):,} bytes, up to {MOST_LINE:,} are allowed")
        with self._lock:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self.path, flags, 0o600)
            try:
                if os.fstat(handle).st_size + len(line) > MOST_BYTES:
                    raise ValueError(f"{self.path}: holds {MOST_BYTES:,} bytes; move it away to go on")
                os.write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)

    def latest(self) -> list[Judgement]:
        """The last judgement of each document, the newest first. Lines that are none are left out."""
        found: dict[tuple[str, ...], Judgement] = {}
        for judgement in self._lines():
            found.pop(judgement.document, None)
            found[judgement.document] = judgement
        return list(found.values())[::-1]

    def export(self) -> bytes:
        """The last judgement of each document, a JSON object a line, in the order in which they were made."""
        return b"".join(json.dumps(asdict(each)).encode() + b"\n" for each in reversed(self.latest()))

    def _lines(self) -> Iterator[Judgement]:
        if not self.path.is_file():
            return
        names = {each.name for each in fields(Judgement)}
        with self.path.open("rb") as stream:
            for line in stream.read(MOST_BYTES).splitlines():
                try:
                    row = json.loads(line)
                    yield Judgement(**{name: value for name, value in row.items() if name in names})
                except (ValueError, TypeError, AttributeError):  # a line that somebody edited, or another tool's
                    continue
