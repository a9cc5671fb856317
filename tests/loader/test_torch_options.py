"""The type of the keywords says what the streams take, name by name and type by type."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from refinery.loader import PackedStream, TokenStream
from refinery.loader.torch.options import PackedOptions, StreamOptions, check_keywords
from tests.sampling import one_commit_in_four

DECIDED = {"prefix", "rank", "world_size", "worker", "workers", "return"}  # given otherwise, or by adapters

USE = """
from refinery.loader.torch.adapter import build_dataloader
from refinery.loader.torch.dataset import TokenDataset
build_dataloader("x", sequence_length=4096, num_workers=1, group=None, packed=True, columns=["a"])
TokenDataset("x", rank=0, world_size=1, cp_size=2)
build_dataloader("x", sequnce_length=4096)
TokenDataset("x", sequence_length="4096")
"""


def test_the_keywords_are_those_of_token_stream() -> None:
    hints = {name: kind for name, kind in get_type_hints(TokenStream.__init__).items() if name not in DECIDED}
    assert get_type_hints(StreamOptions) == hints


def test_the_others_are_those_of_packed_stream() -> None:
    own = get_type_hints(PackedStream.__init__)
    names = [
        name
        for name, found in inspect.signature(PackedStream.__init__).parameters.items()
        if found.default is not found.empty
    ]
    assert {name: own[name] for name in names} == {
        name: kind for name, kind in get_type_hints(PackedOptions).items() if name not in get_type_hints(StreamOptions)
    }


@one_commit_in_four
def test_a_misspelt_keyword_is_an_error_of_types(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(tmp_path / "use.py")]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    errors = [line for line in found.stdout.splitlines() if ": error: " in line and "use.py" in line]
    assert [line.split(":")[1] for line in errors] == ["6", "7"], found.stdout
    assert "sequnce_length" in errors[0] and "sequence_length" in errors[1]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sequnce_length", "did you mean sequence_length?"),
        ("seq_len", "sequence_length"),
        ("shuffle", "rows are always shuffled"),
        ("drop_last", "no batch is dropped"),
        ("xyz", "docs/loader/arguments.md"),
    ],
)
def test_an_unknown_keyword_says_what_is_meant(name: str, hint: str) -> None:
    with pytest.raises(TypeError) as caught:
        check_keywords({"seed": 1, name: 1})
    assert str(caught.value).startswith(f"{name}: no argument of a stream; ") and hint in str(caught.value)
