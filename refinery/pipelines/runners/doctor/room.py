"""Disk and memory beside what a run of these inputs needs at most, by the rules of docs/architecture.md ("What fits on
one machine").
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.recipe.quantities.disk import DISK_PER_TEXT, SCRATCH_PER_TEXT
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning
from refinery.transforms.write.write_documents import PART_BYTES

# Memory of the local runner, measured there: the launcher with what the workers share, and each worker, however much
# text there is.
LAUNCHER_BYTES = 350_000_000
WORKER_BYTES = 350_000_000
# A run fails where not even this share of the text would fit; published funnels keep less of a crawl than a tenth, more
# of text that was filtered before.
LITTLE_KEPT = 0.1


@dataclass(frozen=True)
class Load:
    """What a run asks of this machine. text: bytes at most, 0 if nothing is known. local: whether jobs run here.
    places: local folders that it writes to. scratch: where its temporary files go, "" for TMPDIR.
    """

    text: int = 0
    workers: int = 1
    local: bool = True
    places: Sequence[str] = ()
    scratch: str = ""


def room(load: Load) -> Iterator[Finding]:
    """Memory, the disks that are written to, the folder for temporary files."""
    free = free_memory()
    if load.local:
        base = LAUNCHER_BYTES + WORKER_BYTES * load.workers
        yield compare("memory", free, base, 0, FEWER_WORKERS)
    else:
        yield ok("memory", f"{human_bytes(free)} are free; jobs run elsewhere")
    disks: dict[int, list[Path]] = {}
    for place in load.places:
        folder = existing(place)
        disks.setdefault(folder.stat().st_dev, []).append(folder)
    for folders in disks.values():
        needed = DISK_PER_TEXT * load.text * len(folders) / max(1, len(load.places))
        yield compare(f"disk of {folders[0]}", shutil.disk_usage(folders[0]).free, 0, needed, OTHER_DISK)
        yield from (
            problem(f"disk of {folder}", "it is not writable; choose another folder, or change its permissions")
            for folder in dict.fromkeys(folders)
            if not os.access(folder, os.W_OK | os.X_OK)
        )
    scratch = existing(load.scratch or tempfile.gettempdir())
    parts = min(PART_BYTES, load.text) * load.workers if load.local else 0
    spilled = SCRATCH_PER_TEXT * load.text if load.local else 0
    yield compare(f"temporary files in {scratch}", shutil.disk_usage(scratch).free, parts, spilled, OTHER_SCRATCH)


FEWER_WORKERS = "run fewer workers (--workers)"
OTHER_DISK = "free space, choose another --output or --work, or read fewer files (max_files)"
OTHER_SCRATCH = "free space, or name a folder on another disk (--scratch)"


def compare(check: str, free: int, base: float, needed: float, advice: str) -> Finding:
    """What is free beside what is needed in any case (`base`) and, if all text is kept, beside that (`needed`)."""
    if free < base + LITTLE_KEPT * needed:
        least = human_bytes(base + LITTLE_KEPT * needed)
        return problem(
            check, f"{human_bytes(free)} are free, {least} are needed if a tenth of the text is kept: {advice}"
        )
    if free < base + needed:
        most = human_bytes(base + needed)
        return warning(check, f"{human_bytes(free)} are free, {most} are needed if all text is kept: {advice}")
    if not base + needed:
        return ok(check, f"{human_bytes(free)} are free")
    return ok(
        check,
        f"{human_bytes(free)} are free, {human_bytes(base + needed)} needed {'at most' if needed else 'in any case'}",
    )


def existing(place: str) -> Path:
    """The folder, or the nearest one above it that exists."""
    folder = Path(place).absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def free_memory(system: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that processes can still take: what the kernel says is available, within the limit of the container."""
    try:
        lines = dict(line.split(":", 1) for line in system.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # another system than Linux: all of it
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return min(free, max(0, int(limit) - int(used)))
    except (OSError, ValueError):  # no container, or none with a limit ("max")
        return free
