"""Running an example on several processes, and counting what its ranks have seen."""

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from tests.frameworks.conftest import TOKENS

ROOT = Path(__file__).parents[2]
PAD = 1999  # the corpus' EOS, which no document has
S, B, IGNORE = 32, 2, -100
SECONDS = 250  # that all processes of an example may take


def launch(example: str, corpus: Path, output: Path, *more: str, processes: int = 2) -> str:
    """Run an example on several processes as torchrun does, without its own interpreter; returns what they printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = str(ROOT / "examples" / "frameworks" / f"{example}.py")
    command = [sys.executable, script, str(corpus), "--output", str(output), *more]
    world = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes), "TORCHELASTIC_RUN_ID": "tests"}
    world |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GROUP_RANK": "0"}
    return run_all(command, [world | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)])


def run_all(command: list[str], environments: list[dict[str, str]]) -> str:
    """Run a command once with each environment, at once; returns what the runs printed. The first to fail ends all:
    what the others wait for may never come."""
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in environments]
        running = []
        for each, file in zip(environments, files, strict=True):
            running.append(Popen(command, env=environment(**each), stdout=file, stderr=subprocess.STDOUT))
            stack.callback(running[-1].wait)
            stack.callback(running[-1].kill)
        deadline = time.monotonic() + SECONDS
        while any(process.poll() is None for process in running) and time.monotonic() < deadline:
            if any(process.returncode for process in running):
                break
            time.sleep(0.05)
        codes = [process.returncode for process in running]  # None of one that still runs
        texts = [_printed(file) for file in files]
    assert not any(codes) and None not in codes, "".join(
        f"--- process {index}: exit status {code}\n{text}"
        for index, (code, text) in enumerate(zip(codes, texts, strict=True))
    )
    return "".join(texts)


def _printed(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"} | more


def finish(process: "subprocess.Popen[bytes]") -> str:
    text = process.communicate(timeout=SECONDS)[0].decode()
    assert process.returncode == 0, text
    return text


def seen_by(output: Path, rank: int) -> list[dict[str, Any]]:
    """The rank's batches in order: arrays and the loss."""
    lines = (output / f"seen-{rank}.jsonl").read_text().splitlines()
    return [
        {name: np.array(value) if name != "loss" else value for name, value in json.loads(line).items()}
        for line in lines
    ]


def check_every_token(batches: Iterable[dict[str, Any]], times: int = 1) -> None:
    """Each token of the corpus is an input so many times, in rows as they are cut from the corpus."""
    rows = [row for batch in batches for row in batch["input_ids"].tolist()]
    found = Counter(token for row in rows for token in row if token != PAD)
    assert found == Counter(dict.fromkeys(range(TOKENS), times))
    assert all(row[i + 1] in (row[i] + 1, PAD) for row in rows for i in range(S - 1))


def check_labels(batches: Iterable[dict[str, Any]], unshifted: bool = False) -> None:
    """A token's label is the next one, which has the next number; or, unshifted, itself, but for a row's first."""
    for batch in batches:
        inputs, labels = batch["input_ids"], batch["labels"]
        if unshifted:
            want = np.where(inputs == PAD, IGNORE, inputs)
            want[:, 0] = IGNORE
        else:
            want = np.where((inputs == PAD) | (inputs == TOKENS - 1), IGNORE, inputs + 1)
        assert np.array_equal(labels, want)


def summed_cross_entropy(logits: np.ndarray, inputs: np.ndarray, within: bool = False) -> float:
    """Of predicting the next number after each input, by hand in double precision; within: inside the row alone."""
    logits = logits.astype(np.float64)
    logits = logits - logits.max(axis=-1, keepdims=True)
    scores = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    counted = (inputs != PAD) & (inputs != TOKENS - 1)
    if within:
        counted[:, -1] = False
        counted[:, :-1] &= inputs[:, 1:] != PAD
    rows, columns = np.nonzero(counted)
    return float(-scores[rows, columns, inputs[rows, columns] + 1].sum())
