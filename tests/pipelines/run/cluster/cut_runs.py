"""A run on a cluster as files alone: its cut, and what its slices leave, made by hand."""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path

from refinery.loader.format.manifest import seal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.at_work import Lease, machine_id, process_born
from refinery.pipelines.run.cluster.submission import Submitted
from refinery.pipelines.run.slices.cut import Cut, Step, Wave, publish_cut

MB = 10**6
STEPS = (("clean", 3), ("clean-end", 1), ("dedup-0", 3), ("dedup-1", 1), ("shards-0", 3))


class CutRun:
    """A run below `folder` that was cut into three slices: two waves of 10 MB each, 5 MB for the last one."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / "out"
        self.work = self.prefix / "work"
        self.store = open_store(str(self.work))
        self.ids = (f"{number:016x}" for number in count())
        tasks = {"name": "clean/list-0.jsonl", "items": 1, "sha256": "0" * 64}
        sizes = [(0, 10), (0, 10), (1, 10), (1, 10), (2, 5)]
        waves = tuple(Wave(number, slice_, size * MB, 1, tasks) for number, (slice_, size) in enumerate(sizes))
        publish_cut(self.store, Cut("f" * 64, 3, tuple(Step(*step) for step in STEPS), waves))

    def put(self, name: str, fields: Mapping[str, object]) -> None:
        self.store.create(name, seal(fields))

    def wave(self, number: int, documents: int = 100, seconds: float = 20.0) -> None:
        row = {"stage": "read", "source": "s", "reason": "", "bytes": 40 * MB, "documents": documents}
        counters = [{**row, "outcome": "in"}, {**row, "outcome": "kept"}, {**row, "stage": "url", "outcome": "in"}]
        self.put(f"clean/wave-{number:05d}.json", {"counters": counters, "seconds": {"read": seconds}})

    def slice(self, step: str, number: int) -> None:
        self.put(f"exchange/{step}/slice-{number:05d}.json", {"step": step})

    def elsewhere(self, step: str, number: int, seconds_ago: float) -> None:
        """A command at work on another machine, whose lease was renewed so long ago."""
        id_, renewed = next(self.ids), time.time() - seconds_ago
        self.put(f"at_work/{id_}-00000000.json", asdict(Lease(id_, "n9", "x", 7, "1", 1.0, renewed, step, number)))

    def working(self, step: str, number: int, alive: bool = True) -> None:
        now, born = time.time(), process_born(os.getpid())
        id_, born = next(self.ids), born if alive else "gone"
        lease = Lease(id_, socket.gethostname(), machine_id(), os.getpid(), born, now, now, step, number)
        self.put(f"at_work/{id_}-00000000.json", asdict(lease))

    def failed(self, step: str, number: int, reason: str, ended: float = 1.0) -> None:
        fields = {"step": step, "slice": number, "reason": reason, "host": "n7", "ended": ended}
        self.put(f"at_work/failed-{step}-{number:05d}-{next(self.ids)}.json", fields)

    def finish(self) -> None:
        self.prefix.joinpath("manifest.json").write_text("{}")


def submitted(scripts: Path, **more: object) -> Submitted:
    given: dict[str, object] = {
        "words": ["r.yaml", "--output", "out", "--workers", "2"],
        "ending": ["--discard-work"],
        "folder": "/home/u",
        "scratch": "",
        "scripts": str(scripts),
        "workers": 2,
        "sbatch": ["--partition=cpu"],
        "throttle": 50,
        "missing": {},
        "written": 1,
    }
    return Submitted(**(given | more))  # type: ignore[arg-type] - the test's own values
