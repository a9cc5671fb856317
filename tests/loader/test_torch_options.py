"""The types of keywords and batches say what the streams take and give, name by name and type by type."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from refinery.loader import BatchOptions, PackedStream, ReadOptions, RowOptions, TokenBatch, TokenStream
from refinery.loader.format.packed import STRUCTURE
from refinery.loader.stream.options import (
    ELSEWHERE,
    FLAT,
    GROUPS,
    FlatOptions,
    StreamOptions,
    check_dataloader,
    check_keywords,
    grouped,
)
from refinery.loader.torch.options import DatasetOptions, PackedOptions
from tests.loader.numbered import build_numbered
from tests.sampling import one_commit_in_four

DECIDED = {"prefix", "rank", "world_size", "worker", "workers"}  # given otherwise, or by adapters

USE = """
from refinery.loader import BatchOptions, TokenBatch, TokenStream
from refinery.loader.torch.adapter import build_dataloader
from refinery.loader.torch.dataset import TokenDataset
build_dataloader("x", sequence_length=4096, num_workers=1, group=None, packed=True, columns=["a"])
TokenDataset("x", rank=0, world_size=1, cp_size=2, batch=BatchOptions(doc_ids=True))
build_dataloader("x", sequnce_length=4096)
TokenDataset("x", sequence_length="4096")
TokenStream("x", sequnce_length=4096)
TokenStream("x", doc_ids="yes")
BatchOptions(position_ids=3)
for batch in TokenStream("x", position_ids=True):
    batch["input_ids"].sum(), batch["position_ids"].dtype, batch["max_seqlen"] + 1
    batch["inputs"]
    batch["max_seqlen"].sum()
TokenStream("x").set_epoch(1)
"""
WRONG = {
    7: "sequnce_length", 8: "sequence_length", 9: "sequnce_length", 10: "doc_ids", 11: "position_ids", 14: "inputs",
    15: "sum", 16: "set_epoch",
}  # fmt: skip


def test_flat_keywords_are_the_fields_of_the_groups() -> None:
    fields = {name: kind for group in GROUPS.values() for name, kind in get_type_hints(group).items()}
    assert list(FLAT) == list(fields) and get_type_hints(FlatOptions) == fields
    assert set(inspect.signature(TokenStream).parameters) == {*fields, *DECIDED, *StreamOptions.__annotations__}
    for name, parameter in inspect.signature(TokenStream).parameters.items():
        assert name not in FLAT or parameter.default == FLAT[name].default


def test_the_other_keywords_are_those_of_token_stream() -> None:
    own = get_type_hints(TokenStream.__init__)
    others = get_type_hints(StreamOptions).keys() - get_type_hints(FlatOptions).keys()
    assert {name: own[name] for name in others} == {name: get_type_hints(StreamOptions)[name] for name in others}
    assert own.keys() - others - {"options", "return"} == DECIDED


def test_a_batch_has_the_keys_that_its_type_has(tmp_path: Path) -> None:
    corpus = build_numbered(tmp_path, {"a": [[20, 30]]})
    asked = {name: True for name, each in FLAT.items() if each.default is False and not name.startswith("ignore")}
    with TokenStream(corpus, 8, 2, prefetch=0, **asked) as stream:  # type: ignore[arg-type] # all of them are flags
        batch: dict[str, Any] = dict(next(stream))
    hints = get_type_hints(TokenBatch)
    assert hints.keys() == batch.keys() | STRUCTURE.keys()
    for name, array in batch.items():
        assert name == "max_seqlen" or str(array.dtype) in str(hints[name]).replace("bool_", "bool")
    for name, kind in STRUCTURE.items():
        assert kind.name in str(hints[name])


@pytest.mark.parametrize(
    ("groups", "flat"),
    [
        ({"batch": BatchOptions(position_ids=True, labels="unshifted")}, {"position_ids": True, "labels": "unshifted"}),
        ({"rows": RowOptions(packing="best_fit", loop="restart")}, {"packing": "best_fit", "loop": "restart"}),
        ({"reading": ReadOptions(prefetch=0)}, {"prefetch": 0}),
    ],
)
def test_a_group_means_its_keywords(tmp_path: Path, groups: Any, flat: Any) -> None:
    corpus = build_numbered(tmp_path, {"a": [[20, 30, 7]]})
    with TokenStream(corpus, 8, 2, epochs=1, **groups) as one, TokenStream(corpus, 8, 2, epochs=1, **flat) as other:
        assert one.state_dict() == other.state_dict() and one.loop == other.loop
        for mine, theirs in zip(one, other, strict=True):
            assert {name: array.tolist() for name, array in dict(mine).items()} == {
                name: array.tolist() for name, array in dict(theirs).items()
            }


def test_a_group_and_one_of_its_keywords_are_refused() -> None:
    for name, kind in GROUPS.items():
        for field in FLAT:
            given = {name: kind(), field: FLAT[field].default}
            if field in kind.__dataclass_fields__:
                with pytest.raises(ValueError, match=rf"^{field}: given beside {name}={kind.__name__}\(\.\.\.\)"):
                    grouped(given)
            else:
                grouped(given)
    with pytest.raises(ValueError, match=r"^doc_ids: given beside batch=BatchOptions"):
        TokenStream("nowhere", batch=BatchOptions(), doc_ids=True)
    with pytest.raises(ValueError, match=r"^packing: given, rows are packed already"):
        PackedStream("nowhere", rows=RowOptions(packing="best_fit"))
    with pytest.raises(ValueError, match=r"^rows: 'best_fit' given, RowOptions or None is allowed"):
        TokenStream("nowhere", rows="best_fit")  # type: ignore[arg-type] # what is refused


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
def test_misspelt_keywords_and_keys_are_errors_of_types(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(tmp_path / "use.py")]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    lines = [line for line in found.stdout.splitlines() if "use.py" in line and ": error: " in line]
    errors = {int(line.split(":")[1]): line for line in lines}
    assert errors.keys() == WRONG.keys(), found.stdout
    assert all(word in errors[line] for line, word in WRONG.items()), found.stdout


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sequnce_length", "did you mean sequence_length?"),
        ("seq_len", "sequence_length"),
        ("seq_length", "sequence_length"),
        ("micro_batch_size", "batch_size"),
        ("set_epoch", "counts its epochs itself"),
        ("dataloader_drop_last", "no batch is dropped"),
        ("drop_last", "no batch is dropped"),
        ("xyz", "docs/loader/arguments.md"),
    ],
)
def test_an_unknown_keyword_says_what_is_meant(name: str, hint: str) -> None:
    for check in (lambda: check_keywords({"seed": 1, name: 1}), lambda: TokenStream("nowhere", **{name: 1})):
        with pytest.raises(TypeError) as caught:
            check()
        assert str(caught.value).startswith(f"{name}: no argument of a stream; ") and hint in str(caught.value)


def test_hints_name_what_there_is() -> None:
    known = {*FLAT, *DatasetOptions.__annotations__, *StreamOptions.__annotations__, "prefix"}
    assert not known & ELSEWHERE.keys()
    assert all(hint in known or " " in hint or "(" in hint for hint in ELSEWHERE.values())


@pytest.mark.parametrize("name", ["shuffle", "drop_last", "sampler", "batch_size", "collate_fn"])
def test_what_the_stream_decides_is_not_passed_to_the_data_loader(name: str) -> None:
    with pytest.raises(TypeError, match=f"^dataloader: {name} given, which the stream decides; "):
        check_dataloader({"timeout": 3, name: True})


def test_set_epoch_says_that_the_stream_counts(tmp_path: Path) -> None:
    with TokenStream(build_numbered(tmp_path, {"a": [[20]]}), 8, 2) as stream:
        assert not hasattr(stream, "set_epoch")
        with pytest.raises(AttributeError, match="no attribute 'set_epoch'; the stream counts its epochs itself"):
            stream.set_epoch(1)  # type: ignore[attr-defined] # what is refused
        with pytest.raises(AttributeError, match=r"no attribute 'xyz'$"):
            _ = stream.xyz  # type: ignore[attr-defined] # what is refused
