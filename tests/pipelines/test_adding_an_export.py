"""The steps of "An export" in docs/extending/, followed literally: one file, one command."""

import pickle
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pyarrow as pa
import pytest

import refinery.corpus
from refinery.loader.errors import FormatError
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.export import options
from refinery.pipelines.corpus.export.registry import load_format
from refinery.pipelines.recipe import user_stages
from tests.docs.blocks import subject_text
from tests.pipelines.corpus.export.exporting import corpus_shards
from tests.sampling import one_commit_in_four

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# An export\n") :]
CODE, TEST = re.findall(r"```python\n(.*?)```", SECTION, re.S)[:2]
COMMAND = re.search(r"```sh\n(.*?)\n```", SECTION, re.S)
assert COMMAND


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's own folder, in which commands run."""
    (tmp_path / "arrow_ipc.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("arrow_ipc", None)


def offer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package has the format as an entry point."""
    points = [EntryPoint("arrow", "arrow_ipc:ARROW", "refinery.exports")]
    monkeypatch.setattr(user_stages, "entry_points", lambda group: [p for p in points if p.group == group])


def words(corpus: Path, output: Path, form: str = "") -> list[str]:
    found = shlex.split(COMMAND[1])[1:]
    found[found.index("out/web")] = str(corpus)
    found[found.index("out/web-arrow")] = str(output)
    return [form if form and word == "arrow_ipc:ARROW" else word for word in found]


@one_commit_in_four
def test_the_steps(
    corpus: Path, mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = mine / "made"
    done = subprocess.run(
        [sys.executable, "-m", "refinery", *words(corpus, output), "--workers", "2", "--quiet"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    want = dict(corpus_shards(corpus))
    files = sorted(output.rglob("*.arrow"))
    assert len(files) == len(want)
    found = [row["text_bytes"] for path in files for row in pa.ipc.open_file(path).read_all().to_pylist()]
    assert sorted(found) == sorted(row["text_bytes"] for documents in want.values() for row in documents)

    assert execute(["verify", str(output)]) == 1
    assert "the format 'arrow' is not built in; install the package that offers it" in capsys.readouterr().out
    with pytest.raises(FormatError, match="the format 'arrow' is not built in"):
        list(refinery.corpus.open(output).documents())
    offer(monkeypatch)
    assert execute(["verify", str(output)]) == 0
    opened = refinery.corpus.open(output)
    ids = {row["id"] for documents in want.values() for row in documents}
    assert {row["id"] for batch in opened.documents(["id"]) for row in batch.to_pylist()} == ids
    assert execute([*words(corpus, output, "arrow"), "--workers", "0"]) == 0  # of the same name: complete already
    capsys.readouterr()

    (mine / "arrow_ipc.py").write_text(CODE.replace('compression="zstd"', 'compression="lz4"'))
    sys.modules.pop("arrow_ipc", None)
    assert execute([*words(corpus, output), "--workers", "0"]) == 1
    assert "holds another export" in capsys.readouterr().err


def test_it_is_loaded_once_and_travels_by_name(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    monkeypatch.setattr(options, "load_format", lambda name, also: loaded.append(name) or load_format(name))
    made = options.ExportOptions("arrow_ipc:ARROW")
    assert [made.declared.name, made.declared.suffix(made.files), bool(made.code.files)] == ["arrow", ".arrow", True]
    there = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
    assert there == made and vars(there).keys() < vars(made).keys() and len(loaded) == 1
    assert there.declared.name == there.declared.name == "arrow" and len(loaded) == 2


@one_commit_in_four
def test_its_test_passes(mine: Path) -> None:
    (mine / "test_arrow.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(mine / "test_arrow.py")],
        capture_output=True,
        text=True,
        cwd=mine,
        timeout=240,
    )
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    "form, message",
    [
        ("nosuch:ARROW", "--format: module 'nosuch' found neither in .* nor installed"),
        ("arrow_ipc:ARROV", "no declaration of a export format by that name; did you mean ARROW"),
        ("arow", "--format: 'arow' given, one of jsonl, .* or module:NAME is allowed"),
        ("taken_export:JSONL", "an export 'jsonl': a name that no format has is allowed"),
    ],
)
def test_what_is_no_format(
    form: str, message: str, corpus: Path, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = CODE.replace('name="arrow"', 'name="jsonl"').replace("ARROW =", "JSONL =")
    (mine / "taken_export.py").write_text(taken)
    assert execute(words(corpus, mine / "made", form)) == 2
    said = capsys.readouterr().err
    assert re.search(message, said), said
    assert not (mine / "made").exists()
    sys.modules.pop("taken_export", None)
