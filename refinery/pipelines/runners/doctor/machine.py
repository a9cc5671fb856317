"""This machine: open files, shared memory, text encoding, clock. Nothing here reaches over the network."""

import locale
import os
import resource
import shutil
import sys
import time
from datetime import datetime
from pathlib import Path

import refinery
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning

# A worker keeps some 100 files open (libraries, connections, parts); the loader maps up to half of the limit.
FEW_FILES = 1024
SHARED_MEMORY = Path("/dev", "shm")
# Docker gives 64 MiB, which PyTorch's worker processes fill with a few batches.
LITTLE_SHARED = 64 << 20


def open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        most = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return warning(
            "open files", f"{soft:,} are allowed, {FEW_FILES:,} may be needed: `ulimit -n 4096` (at most {most} here)"
        )
    return ok("open files", "no limit" if soft == resource.RLIM_INFINITY else f"{soft:,} are allowed")


def shared_memory(folder: Path = SHARED_MEMORY) -> Finding:
    if not folder.is_dir():
        return ok("shared memory", f"no {folder} on this system")
    free = shutil.disk_usage(folder).free
    if free <= LITTLE_SHARED:
        return warning(
            "shared memory",
            f"{free / 1e6:,.0f} MB are free in {folder}; runs need none, but PyTorch's worker processes do; give "
            "the container more (docker run --shm-size=2g)",
        )
    return ok("shared memory", f"{free / 1e9:,.1f} GB are free in {folder}")


def encoding() -> Finding:
    """Names of files and what is printed are UTF-8."""
    found = {
        "files are named": sys.getfilesystemencoding(),
        "text is read": locale.getpreferredencoding(False),
        "lines are printed": getattr(sys.stdout, "encoding", None) or "utf-8",
    }
    wrong = [f"{what} in {name}" for what, name in found.items() if name.lower().replace("-", "") != "utf8"]
    if wrong:
        return warning("encoding", f"{', '.join(wrong)}: set PYTHONUTF8=1, or LANG=C.UTF-8")
    return ok("encoding", "UTF-8")


def clock(now: float | None = None) -> Finding:
    """A clock before this installation is wrong; storage refuses requests that are signed minutes off."""
    now = time.time() if now is None else now
    installed = os.stat(refinery.__file__).st_mtime
    shown = datetime.fromtimestamp(now).astimezone().isoformat(timespec="seconds")
    if now < installed:
        return problem(
            "clock",
            f"it says {shown}, which is before this installation; Google refuses such requests, so set it (by NTP)",
        )
    return ok("clock", shown)
