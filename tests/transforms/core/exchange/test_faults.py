"""Faults in an exchange on disk: whatever happens, all that was sent arrives, or the job fails; nothing is silent.

Each seed is a random exchange with a random fault. A commit runs some of them, `make test-all` thousands.
"""

import errno
import fcntl
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from refinery.loader.storage import local_files
from refinery.loader.storage.full_disk import DiskFull
from refinery.transforms.core.exchange import partition_file
from refinery.transforms.core.exchange.section_file import write_sections
from refinery.transforms.core.exchange.sliced import Crossing
from refinery.transforms.core.exchange.tally import ExchangeError
from tests.loader.disk_faults import done_then, failing_first, refused
from tests.sampling import ALL
from tests.transforms.core.exchange.engine import NAME, Element, expected, found, receive, send

Told = list[tuple[int, bytes]]
SEEDS = 400 if ALL else 40  # of each fault


def make_bundles(rng: random.Random) -> list[list[Element]]:
    keys = rng.choice([1, 3, 40])
    return [
        [(rng.randrange(keys), rng.randbytes(rng.choice([0, 1, 30, 900]))) for _ in range(rng.choice([0, 1, 10, 60]))]
        for _ in range(rng.randint(1, 5))
    ]


def partitions(folder: Path) -> list[Path]:
    return sorted((folder / NAME).glob("*.partition"))


def lose_a_file(rng: random.Random, folder: Path, told: Told) -> None:
    rng.choice(partitions(folder)).unlink()


def double_a_file(rng: random.Random, folder: Path, told: Told) -> None:
    path = rng.choice(partitions(folder))
    shutil.copy(path, path.with_name("0" * 32 + ".partition"))


def cut_a_file(rng: random.Random, folder: Path, told: Told) -> None:
    path = rng.choice(partitions(folder))
    os.truncate(path, rng.randrange(path.stat().st_size))


def flip_a_byte(rng: random.Random, folder: Path, told: Told) -> None:
    path = rng.choice(partitions(folder))
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= rng.randint(1, 255)
    path.write_bytes(data)


def swap_two_files(rng: random.Random, folder: Path, told: Told) -> None:
    paths = partitions(folder)
    first, second = rng.sample(paths, 2) if len(paths) > 1 else (paths[0], paths[0])
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def lose_a_line(rng: random.Random, folder: Path, told: Told) -> None:
    path = folder / NAME / "ledger"
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    path.write_bytes(b"".join(lines))


def double_a_line(rng: random.Random, folder: Path, told: Told) -> None:
    path = folder / NAME / "ledger"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[0])


def cut_the_ledger(rng: random.Random, folder: Path, told: Told) -> None:
    path = folder / NAME / "ledger"
    os.truncate(path, rng.randrange(path.stat().st_size))


def change_a_count(rng: random.Random, folder: Path, told: Told) -> None:
    path = folder / NAME / "ledger"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    rng.choice(lines)[rng.choice([1, 2, 3, 4])] += rng.choice([-1, 1])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def lose_names(rng: random.Random, folder: Path, told: Told) -> None:
    """The runner's own race: names are lost on their way, here and there or all."""
    told[:] = [each for each in told if rng.random() < rng.choice([0, 0.3, 0.8])]


def double_names(rng: random.Random, folder: Path, told: Told) -> None:
    told += rng.sample(told, rng.randint(1, len(told)))


def nothing(rng: random.Random, folder: Path, told: Told) -> None:
    """Slots are late, and that is all."""


HARMLESS = (double_names, nothing)
FAULTS: Sequence[Callable[[random.Random, Path, Told], None]] = (
    lose_a_file,
    double_a_file,
    cut_a_file,
    flip_a_byte,
    swap_two_files,
    lose_a_line,
    double_a_line,
    cut_the_ledger,
    change_a_count,
    lose_names,
    *HARMLESS,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_all_arrives_or_the_job_fails(
    fault: Callable[[random.Random, Path, Told], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    for seed in range(SEEDS):
        rng = random.Random(f"{fault.__name__} {seed}")
        folder = tmp_path / str(seed)
        slots = rng.randint(1, 4)
        monkeypatch.setattr(partition_file, "FLUSH_BYTES", rng.choice([100, 2_000, 1 << 20]))
        bundles = make_bundles(rng)
        told = send(folder, bundles, slots)
        if not told:  # nothing was sent
            continue
        fault(rng, folder, told)
        delay = rng.choice([0, 0, 0, 0.0005])
        delivered = receive(folder, told, slots, pause=lambda delay=delay: time.sleep(delay))
        right = expected(bundles)
        for key, values in delivered.whole:  # what a step may have published already
            assert sorted(values) == right[key], (seed, key)
        if delivered.error is None:
            assert found(delivered) == right, seed
            assert sum(tally["elements"] for tally in delivered.report.values()) == sum(map(len, bundles))
            assert not partitions(folder)  # gone once they were read
        else:
            failed += 1
            assert isinstance(delivered.error, ExchangeError), delivered.error
        shutil.rmtree(folder)
    assert not failed if fault in HARMLESS else failed > SEEDS // 10


def test_bundles_that_are_replayed_count_once(tmp_path: Path) -> None:
    """Every bundle sends twice, the names of the first time are dropped, and every slot reads twice."""
    for seed in range(SEEDS):
        rng = random.Random(f"replayed {seed}")
        folder, slots = tmp_path / str(seed), rng.randint(1, 3)
        bundles = make_bundles(rng)
        told = []
        for bundle in bundles:
            send(folder, [bundle], slots)
            told += send(folder, [bundle], slots)
        if not told:
            continue
        receive(folder, told, slots, repeats=True)
        delivered = receive(folder, told, slots, repeats=True)
        assert delivered.error is None
        assert found(delivered) == expected(bundles)


@pytest.mark.parametrize("disk", ["no locks", "a rename's answer is lost", "files open late"])
def test_a_shared_disk_delivers_all(disk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch folders may be on one, with all that it lacks."""
    monkeypatch.setattr(partition_file, "FLUSH_BYTES", 500)
    monkeypatch.setattr(partition_file, "MOST_SEGMENTS", 4)
    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    for seed in range(SEEDS // 4):
        rng = random.Random(f"{disk} {seed}")
        slots, bundles = rng.randint(1, 4), make_bundles(rng)
        with monkeypatch.context() as patched:
            if disk == "no locks":
                patched.setattr(fcntl, "flock", refused(errno.ENOLCK))
            elif disk == "a rename's answer is lost":
                patched.setattr(os, "rename", done_then(os.rename, errno.ENOENT))
            else:
                patched.setattr(Path, "open", failing_first(Path.open, errno.EIO, 2))
            told = send(tmp_path / str(seed), bundles, slots)
            if told:
                delivered = receive(tmp_path / str(seed), told, slots)
                assert delivered.error is None and found(delivered) == expected(bundles)


def test_a_rename_that_was_not_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "rename", refused(errno.ENOENT))
    with pytest.raises(FileNotFoundError):
        send(tmp_path, [[(1, b"x")]], 1)


@pytest.mark.parametrize("kind", ["full disk", "failing disk"])
def test_a_disk_that_fails_at_any_write(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle fails with the place named; what was entered before is whole, and what was not is no part of it."""
    code = errno.ENOSPC if kind == "full disk" else errno.EIO
    write, left = os.write, 0

    def limited(descriptor: int, data: bytes) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(code, os.strerror(code))
        return write(descriptor, data)

    monkeypatch.setattr(partition_file, "FLUSH_BYTES", 500)
    failures = 0
    for seed in range(SEEDS):
        rng = random.Random(f"{kind} {seed}")
        folder = tmp_path / str(seed)
        bundles = make_bundles(rng)
        left = rng.randrange(30)
        done, told = [], []
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", limited)
            for bundle in bundles:
                try:
                    told += send(folder, [bundle], 1)
                    done.append(bundle)
                except OSError as error:
                    failures += 1
                    assert kind == "failing disk" or (isinstance(error, DiskFull) and str(folder) in str(error))
        if told:
            delivered = receive(folder, told, 1)
            # a bundle whose file was written and whose line was not is a file that the ledger does not have
            assert isinstance(delivered.error, ExchangeError) or found(delivered) == expected(done)
    assert failures > SEEDS // 10


def test_a_worker_killed_at_any_step_delivers_nothing_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, killed at a system call: the job ends, and nothing that it left looks finished."""
    monkeypatch.setattr(partition_file, "FLUSH_BYTES", 500)
    bundles = [[(number % 3, bytes([number]) * 50) for number in range(40)] for _ in range(2)]
    killed = 0
    for step in range(0, 200, 1 if ALL else 5):
        folder = tmp_path / str(step)
        told = send(folder, bundles[:1], 2)
        child = os.fork()
        if not child:
            die_at(step)
            try:
                send(folder, bundles[1:], 2)
                receive(folder, told, 2)
            finally:
                os._exit(0)
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        again = receive(folder, told, 2)  # nobody does that after a death; it must not be believed even so
        right = expected(bundles)
        for key, values in again.whole:
            assert sorted(values) in (right[key], expected(bundles[:1])[key])
        if again.error is None and again.whole:
            assert found(again) in (right, expected(bundles[:1]))
    assert killed > 5


def die_at(step: int) -> None:
    """Kill this process at its system call of that number, of those that touch files."""
    count = 0

    def wrap(name: str) -> None:
        call = getattr(os, name)

        def counted(*args: object, **options: object) -> object:
            nonlocal count
            count += 1
            if count > step:
                os.kill(os.getpid(), 9)
            return call(*args, **options)

        setattr(os, name, counted)

    for name in ("open", "write", "pwrite", "pread", "rename", "close", "ftruncate"):
        wrap(name)


def test_sections_are_made_of_files_that_open_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What slices send lies on the disk that their nodes share, too."""
    bundles = make_bundles(random.Random("sections"))
    send(tmp_path / "sent", bundles, 3)
    crossings = {NAME: Crossing(step=1, whole=False, slice_of=lambda key: int(key) % 2)}
    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    opened, late = Path.open, failing_first(Path.open, errno.EIO, 2)
    monkeypatch.setattr(Path, "open", lambda path, mode: (late if mode == "rb" else opened)(path, mode))
    sent = write_sections(tmp_path / "sent", tmp_path / "sections", crossings, 2)
    assert sent[NAME].tally.fields()["elements"] == sum(map(len, bundles))
