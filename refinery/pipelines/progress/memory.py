"""Memory of processes, from /proc; nothing on other platforms."""

import contextlib
import os
from collections.abc import Iterable

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def process_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Bytes of memory of a process: its proportional share (PSS), else what is resident; None where nothing says so.

    Cost: the kernel walks the process' pages for the first, milliseconds for each GB.
    """
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"{proc}/{pid}/smaps_rollup") as lines:
        for line in lines:
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return resident_bytes(pid, proc)


def resident_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Bytes of a process' memory that are resident, those that it shares included; None where nothing says so."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"{proc}/{pid}/statm") as stream:
        return int(stream.read().split()[1]) * PAGE
    return None


def memory_bytes(pids: Iterable[int], proc: str = "/proc") -> int | None:
    """Of all these processes that are there, together; None where nothing is known of any."""
    known = [size for pid in pids if (size := process_bytes(pid, proc)) is not None]
    return sum(known) if known else None
