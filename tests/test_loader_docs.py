"""The pages of the loader agree with it (arguments, defaults, arrays, state, counters, errors), and their code runs."""

import dataclasses
import importlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery import loader
from refinery.loader import BestFitParams, TokenStream
from refinery.loader.order.mix_params import MixParams
from refinery.loader.order.order import OrderParams
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.fetch import FetchParams, ReadCounters
from refinery.loader.stream.assignment import PlateauParams
from refinery.loader.stream.fill_in_middle import FillInMiddleParams
from refinery.loader.stream.simulate import REGION_QUOTA, SimulateParams, main
from refinery.loader.stream.telemetry import ELSEWHERE, TRACKS
from tests import corpus_factory
from tests.docs.blocks import FENCE, ROOT, subject_text
from tests.sampling import one_commit_in_four
from tests.test_docs import README, rows, section

TEXT = subject_text("loader")
SIZES = {"GiB": 2**30, "MiB": 2**20}
BLOCKS = [body for language, body in FENCE.findall(TEXT) if language == "python"]
README_BLOCKS = [body for language, body in FENCE.findall(README.read_text()) if language == "python"]
WITH_TORCH = [body for body in BLOCKS if "import torch" in body]
PLAIN = [body for body in BLOCKS if body not in WITH_TORCH] + README_BLOCKS
EXCEPTIONS = re.compile(r"`(\w+Error|CorruptShard|CorruptObject|NoTexts|NoTokens|RepetitionLimit|TooManyRuns)`")


def table(header: str) -> dict[str, str]:
    """Name -> second cell, of the table whose first header is `header`. A row may name several."""
    lines = FENCE.sub("", TEXT).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {header} |"))
    found: dict[str, str] = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return found
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[1])
    return found


def value(cell: str) -> Any:
    number, _, unit = cell.partition(" ")
    if unit in SIZES:
        return int(number) * SIZES[unit]
    known = {"None": None, "True": True, "False": False, "FetchParams()": FetchParams()}
    return known[cell] if cell in known else json.loads(cell)


# --- arguments and parameters ---------------------------------------------------------------------------------------


def test_arguments_are_those_of_the_stream_with_their_defaults_in_order() -> None:
    parameters = inspect.signature(TokenStream).parameters
    documented = table("argument")
    assert list(documented) == list(parameters)
    required = inspect.Parameter.empty
    assert {name: required if cell == "required" else value(cell) for name, cell in documented.items()} == {
        name: parameter.default for name, parameter in parameters.items()
    }
    positional = [p for p in parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert len(positional) == 9 and "the first nine can be given by position" in TEXT


def test_every_method_is_in_the_table() -> None:
    documented = {name for cells in rows(section(TEXT, "Methods")) for name in re.findall(r"`(\w+)[`(]", cells[0])}
    offered = {name for name in dir(TokenStream) if not name.startswith("_")}
    assert documented - {"next"} == offered - {"loop"}  # an argument, too


@pytest.mark.parametrize(
    "params", [OrderParams, MixParams, RemoteParams, FetchParams, FillInMiddleParams, PlateauParams, BestFitParams]
)
def test_parameters_are_documented_with_their_defaults(params: Any) -> None:
    documented = table(f"`{params.__name__}`")
    fields = {field.name: field for field in dataclasses.fields(params)}
    assert set(documented) == set(fields)
    for name, field in fields.items():
        default = field.default_factory() if callable(field.default_factory) else field.default  # type: ignore[misc]
        if default is dataclasses.MISSING:
            assert documented[name] == "required", name
        else:
            assert value(documented[name]) == default, name


def test_options_of_the_simulation_are_documented() -> None:
    documented = set(re.findall(r"--[\w-]+", section(TEXT, "Simulating a day of 2,048 ranks")))
    names = {field.name.replace("_", "-") for field in dataclasses.fields(SimulateParams)} - {"order"}
    assert documented == {f"--{name}" for name in names | {"lanes", "window", "block", "json"}}
    assert f"{REGION_QUOTA / 1e9:.4g} GB/s" in TEXT


def test_the_simulated_day_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """For a minute of it: the layout, and the figures that do not depend on the duration."""
    block = next(body for _, body in FENCE.findall(TEXT) if "python -m refinery.loader.stream.simulate\n1e+12" in body)
    documented = block.splitlines()[1:]
    assert main(["--hours", "0.02"]) == 0
    found = capsys.readouterr().out.splitlines()
    assert len(found) == len(documented) and [line[:16] for line in found[2:]] == [line[:16] for line in documented[2:]]
    for same in (0, 2, 8):  # tokens and blocks; bytes delivered per second; lag-1 correlation
        assert found[same] == documented[same]
    assert found[1].split(" for ")[0] == documented[1].split(" for ")[0]


# --- batches, state, telemetry --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus in the place of the one of `make demo`, with the same two domains."""
    root = tmp_path_factory.mktemp("docs")
    texts = {
        ("train", "web"): [[f"The {i}th of {k} documents. " * (1 + i % 3) for i in range(90)] for k in (1, 2)],
        ("train", "notes"): [[f"Note {i}. " * (1 + i % 9) for i in range(90)]],
        ("validation", "web"): [["held out " * 90, "kept aside"]],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(corpus_factory.SOURCES, "notes", "notes")  # type: ignore[arg-type]
        corpus_factory.build_corpus(root / "out" / "demo" / "corpus", texts)
    return root


@pytest.fixture
def stream(folder: Path) -> Iterator[TokenStream]:
    arrays: dict[str, Any] = dict.fromkeys(
        ("loss_mask", "position_ids", "doc_ids", "cu_seqlens", "domain_ids", "sample_ids"), True
    )
    with TokenStream(str(folder / "out/demo/corpus"), sequence_length=64, batch_size=4, **arrays) as opened:
        yield opened


def test_every_array_of_a_batch_is_documented_with_dtype_and_shape(stream: TokenStream) -> None:
    batch = next(stream)
    documented = table("key")
    assert set(documented) == set(batch)
    for name, cell in documented.items():
        array = batch[name]
        if isinstance(array, np.ndarray):
            shape = "[B, S]" if array.shape == (4, 64) else "[B]" if name in ("domain_ids", "sample_ids") else "[n + 1]"
            assert cell == f"{array.dtype.name} {shape}", name
        else:
            assert cell == type(array).__name__, name


def test_what_is_masked_by_default(folder: Path) -> None:
    """Padding, empty rows and the label of the very last token; nothing else."""
    *others, last = TokenStream(str(folder / "out/demo/corpus"), 64, 4, epochs=1, loss_mask=True, doc_ids=True)
    padded = [batch for batch in (*others, last) if not batch["loss_mask"].all()]
    tokens = sum(int((batch["doc_ids"] >= 0).sum()) for batch in (*others, last))
    assert sum(int(batch["loss_mask"].sum()) for batch in (*others, last)) == tokens - 1
    assert padded and all(np.array_equal(batch["labels"] == -100, ~batch["loss_mask"]) for batch in padded)
    assert "labels -100, loss_mask False, doc_ids -1" in TEXT


def test_every_key_of_a_state_is_documented(stream: TokenStream) -> None:
    state = stream.state_dict()
    keys = rows(section(TEXT, "What a state holds"))
    documented = {name for cells in keys for name in re.findall(r"`(\w+)`", cells[0])}
    assert documented == set(state)


def test_every_counter_and_stage_is_documented() -> None:
    text = section(TEXT, "Telemetry and receipts")
    counters = [field.name for field in dataclasses.fields(ReadCounters) if not field.name.startswith("_")]
    assert [name for name in (*counters, *TRACKS, ELSEWHERE) if f"`{name}`" not in text] == []
    assert set(table("stage")) == set(TRACKS)


def test_every_example_of_a_framework_is_in_the_table_and_tested() -> None:
    named = set(re.findall(r"`(\w+)\.py[ `]", section(subject_text("frameworks"), "Training frameworks")))
    examples = {path.stem for path in (ROOT / "examples" / "frameworks").glob("*.py")} - {"common"}
    assert named == examples
    tested = (ROOT / "tests" / "frameworks" / "test_examples.py").read_text()
    assert [name for name in examples if f'"{name}"' not in tested and f"{name}.py" not in tested] == []


# --- errors ---------------------------------------------------------------------------------------------------------


def test_errors_are_those_of_the_loader() -> None:
    """Every public error that reading a corpus can raise is in the table, and no others."""
    documented = {name for cells in rows(section(TEXT, "Errors")) for name in EXCEPTIONS.findall(cells[0])}
    own: set[str] = set()
    for path in (ROOT / "loader").rglob("*.py"):
        if path.parent.name == "torch" or path.stem == "__init__":
            continue
        module = importlib.import_module("refinery." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
        own |= {
            name
            for name, found in vars(module).items()
            if inspect.isclass(found)
            and issubclass(found, Exception)
            and found.__module__.startswith("refinery.loader.")
        }
    # caught inside the loader
    inside = {
        "Transient",
        "Permanent",
        "WrongBytes",
        "DamagedBlock",
        "Refusal",
        "MissingBucket",
        "SessionLost",
        "Answered",
        "BadAnswer",
        "CredentialsError",
        "Exists",
        "UploadLost",
        "IsView",
    }
    writing = {"StorageConflict", "DiskFull"}
    commands = {"IsView"}  # a stream takes views, too
    assert own - inside - writing - commands <= documented
    assert documented - own == {"ValueError", "RuntimeError"}
    assert documented & own <= set(loader.__all__)  # as the page says


# --- code -----------------------------------------------------------------------------------------------------------


def run(code: str, folder: Path, **environment: str) -> None:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@one_commit_in_four
def test_the_pages_code_runs(folder: Path) -> None:
    """All blocks without PyTorch, each with its own names, in one process."""
    assert len(PLAIN) >= 9
    code = f"for block in {PLAIN!r}:\n    exec(compile(block, 'loader.md', 'exec'), {{'__name__': 'block'}})"
    run(code.replace("244_140_625", "300_000"), folder)


@pytest.mark.parametrize("number", range(len(WITH_TORCH)))
def test_the_pages_code_for_pytorch_runs(number: int, folder: Path) -> None:
    pytest.importorskip("torch", reason="the extra [torch] is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    run(WITH_TORCH[number], folder, RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)


@pytest.mark.parametrize("number", range(len(WITH_TORCH)))
def test_the_pages_code_for_pytorch_names_what_exists(number: int) -> None:
    """Without PyTorch: it compiles, and passes only arguments that the stream has."""
    code = WITH_TORCH[number]
    compile(code, "loader.md", "exec")
    options = set(re.findall(r"(\w+)=", "".join(re.findall(r"build_dataloader\(.*?\)", code))))
    assert options and options <= set(inspect.signature(TokenStream).parameters)
