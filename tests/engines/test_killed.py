"""Something of a run is killed, on every engine and in every phase: it goes on, or the same command does, to the same
bytes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.engines import ENGINES, PRISM
from tests.engines.killed import (
    CELLS,
    LAUNCHER,
    MOST_SECONDS,
    POOL_ITSELF,
    SLICES,
    Beside,
    Cell,
    is_begun,
    is_over,
    phase_seconds,
    processes,
    wait_until,
)
from tests.engines.lanes import RECIPES, digests, refinery
from tests.pipelines.small_runs import check_work, folder_files
from tests.sampling import sampled

pytestmark = [
    pytest.mark.skipif(not os.environ.get("REFINERY_ENGINES"), reason="minutes of whole runs: make test-engines"),
    pytest.mark.timeout(900),
]
ATTEMPTS = 4  # a phase may be over before something of it is killed
KEPT = 4  # cells of a commit


@pytest.fixture
def demo(lane_folder: Callable[[str], Path]) -> Path:
    return lane_folder("web")


@pytest.mark.parametrize("cell", sampled("kills", CELLS, KEPT), ids=str)
def test_the_same_bytes_although_it_died(demo: Path, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    if cell.setting.uses_prism and not PRISM.is_file():
        pytest.skip(next(engine.missing for engine in ENGINES if engine.missing))
    monkeypatch.chdir(demo)  # a pool sees the recipe's relative paths from there
    with Beside(cell.setting) as beside:
        prefix = next(filter(None, (broken_run(demo, cell, beside, number) for number in range(ATTEMPTS))), None)
        assert prefix, f"{cell}: the phase was over before anything was killed, {ATTEMPTS} times"
        beside.start_missing()
        for words in commands(cell, beside, prefix):
            refinery(demo, *words)
    expected = digests(demo / "expected")
    assert len(expected) > 5 and digests(prefix) == expected
    check_leftovers(prefix)
    wait_until(f"no process is left: {processes(beside.mark)}", lambda: not processes(beside.mark))


def commands(cell: Cell, beside: Beside, prefix: Path) -> list[list[str]]:
    """Of a whole run, one after the other."""
    plain = ["refine", RECIPES["web"], "--output", prefix.name, *beside.flags]
    return [[*plain, *words] for words in SLICES] if cell.setting.sliced else [plain]


def broken_run(demo: Path, cell: Cell, beside: Beside, attempt: int) -> Path | None:
    """A run up to where something of it is killed, and its end; its prefix. None where the phase was over before."""
    name = f"{cell}-{attempt}".replace(", ", "-").replace(" ", "-")
    prefix, output = demo / name, demo / f"{name}.log"
    delay = cell.share * phase_seconds(demo / "expected" / "work", cell.phase)
    words = commands(cell, beside, prefix)
    if cell.setting.sliced:
        killed = next(number for number, line in enumerate(words) if line[-1].startswith(f"--until={cell.phase}"))
        for line in words[:killed]:
            refinery(demo, *line)
        words = words[killed:]
    command = beside.launch(demo, words[0], output)
    try:
        return prefix if strike(cell, beside, command, prefix / "work", delay, output) else None
    finally:
        if command.poll() is None:
            command.kill()
            command.wait()


def strike(
    cell: Cell, beside: Beside, command: subprocess.Popen[bytes], work: Path, delay: float, output: Path
) -> bool:
    """Kill what the cell names when its phase is under way. False where the phase was over before."""
    begun = (lambda: any(work.glob("at_work/*"))) if cell.setting.sliced else (lambda: is_begun(work, cell.phase))
    wait_until(f"{cell.phase} begins", lambda: begun() or command.poll() is not None)
    beside.note_phase()
    time.sleep(delay)
    if is_over(work, cell.phase) or not beside.kill(cell.victim, command):
        command.wait(timeout=MOST_SECONDS)
        return False
    began = time.monotonic()
    code = command.wait(timeout=MOST_SECONDS)
    said = output.read_text()
    print(f"{cell}: after {delay:.2f} s; ended with {code} after {time.monotonic() - began:.1f} s\n{said}")
    if cell.victim == LAUNCHER:
        assert code == -signal.SIGKILL
    elif code == 0:  # a pool's workers live on without it, and do what is left of the last job
        assert cell.victim == POOL_ITSELF, said
    else:
        assert code > 0, said
        assert said.splitlines()[-1].startswith("refinery: "), said  # Beam may log its own traceback before
    return True


def check_leftovers(prefix: Path) -> None:
    """Nothing of the attempts is left: no part that no report claims, no lease, no temporary file or folder."""
    files = folder_files(prefix)
    check_work(files)
    work = {path.relative_to(prefix).as_posix() for path in (prefix / "work").rglob("*")}
    left = [name for name in work if name.startswith(("work/at_work/", "work/exchange", "work/refinery-run"))]
    assert not left
