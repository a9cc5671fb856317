"""What people think of decisions: a line of JSON each, in a local file outside the run."""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from refinery.loader.storage.local_files import naming_file

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
        texts = [getattr(self, each.name) for each in fields(self) if each.name != "measured"]
        if not all(isinstance(each, str) for each in texts) or not isinstance(self.measured, list | tuple):
            raise TypeError("a judgement is made of texts, and of a list of what was measured")
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict: {self.verdict!r:.40} given, one of {', '.join(VERDICTS)} is allowed")
        if len(self.note) > MOST_NOTE:
            raise ValueError(f"note: {len(self.note):,} characters given, up to {MOST_NOTE:,} are allowed")

    @property
    def document(self) -> tuple[str, ...]:
        """What it is about: a later judgement of the same takes the place of this one."""
        return (self.run, self.origin, self.source, "" if self.origin else self.id)


def export(judgements: Sequence[Judgement]) -> bytes:
    """Of the newest first: a JSON object a line, in the order in which they were made."""
    return b"".join(json.dumps(asdict(each)).encode() + b"\n" for each in reversed(judgements))


class Judgements:
    """The file of judgements at `path`. Created with the first one, for its owner only; lines are only added."""

    def __init__(self, path: str, prefixes: Sequence[str]) -> None:
        self.path = Path(path)
        self._lock = Lock()
        here = self.path.resolve()
        for prefix in prefixes:
            if "://" not in prefix and here.is_relative_to(Path(prefix).resolve()):
                raise ValueError(
                    f"--judgements {path}: is inside the run {prefix}, which holds nothing but what it wrote; "
                    "name a file elsewhere"
                )
        if not here.parent.is_dir() or (here.exists() and not here.is_file()):
            raise ValueError(
                f"--judgements {path}: an existing plain file, or a new one in an existing folder, is needed"
            )

    def add(self, judgement: Judgement) -> None:
        """Write a line, whole or not at all. Raises OSError, and ValueError where the file is full."""
        line = json.dumps(asdict(judgement), ensure_ascii=True).encode() + b"\n"
        if len(line) > MOST_LINE:
            raise ValueError(f"a judgement of {len(line):,} bytes, up to {MOST_LINE:,} are allowed")
        with self._lock, naming_file(self.path):
            handle = self._opened(os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                size = os.fstat(handle).st_size
                if size + len(line) > MOST_BYTES:
                    raise ValueError(f"{self.path}: holds {MOST_BYTES:,} bytes; move it away to continue")
                if size and os.pread(handle, 1, size - 1) != b"\n":  # somebody else's last line
                    line = b"\n" + line
                if os.write(handle, line) < len(line):
                    os.ftruncate(handle, size)
                    raise OSError(f"{self.path}: the disk is full; the judgement was not kept")
                os.fsync(handle)
            finally:
                os.close(handle)

    def _opened(self, flags: int) -> int:
        """The file, opened: a plain file under this very name. What would wait for another process, as a FIFO does, is
        refused. Raises OSError, ValueError."""
        handle = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ValueError(f"{self.path}: a plain file is needed for judgements")
        return handle

    def latest(self) -> list[Judgement]:
        """The last judgement of each document, the newest first. Lines that are none are left out."""
        found: dict[tuple[str, ...], Judgement] = {}
        for judgement in self._lines():
            found.pop(judgement.document, None)
            found[judgement.document] = judgement
        return list(found.values())[::-1]

    def _lines(self) -> Iterator[Judgement]:
        try:
            handle = self._opened(os.O_RDONLY)
        except FileNotFoundError:
            return
        names = {each.name for each in fields(Judgement)}
        with open(handle, "rb") as stream:
            for line in stream.read(MOST_BYTES).splitlines():
                try:
                    row = json.loads(line)
                    yield Judgement(**{name: value for name, value in row.items() if name in names})
                except (ValueError, TypeError, AttributeError, RecursionError):  # edited, or another tool's
                    continue
