"""What the fast engine takes of a file without asking the library, against what the library makes of the whole."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.tokenize.byte_level_bpe import (
    BATTERY,
    DEEPSEEK,
    O200K,
    ByteLevelTokenizer,
    byte_alphabet,
    recognise,
)
from refinery.transforms.tokenize.merge_table import added_ids, merge_table, reduced
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.tokenize.tokenizer_json import (
    HuggingFaceTokenizer,
    build,
    load_spec,
    load_tokenizer_json,
    merge_pairs,
)
from tests.sampling import one_commit_in_four, sampled
from tests.transforms.tokenizer_files import END, added, all_pairs, byte_level_spec, split_by

PAIRS = [("a", "b"), ("ab", "c"), ("Ġ", "ab")]


@pytest.mark.parametrize("patterns", [(O200K,), DEEPSEEK])
def test_line_ends_in_a_pattern_may_be_written_either_way(patterns: tuple[str, ...]) -> None:
    """DeepSeek's published file holds the characters themselves, other files escapes."""
    raw = [pattern.replace(r"\r", "\r").replace(r"\n", "\n") for pattern in patterns]
    assert raw != list(patterns)
    spec = byte_level_spec(PAIRS, pre_tokenizer=split_by(*raw))
    assert recognise(spec) == recognise(byte_level_spec(PAIRS, pre_tokenizer=split_by(*patterns)))
    fast = load_spec(spec)
    assert fast.engine == "byte-level-bpe"
    text = "ab \r\n\n c!\n\nab\r"
    np.testing.assert_array_equal(fast.encode(text), HuggingFaceTokenizer(spec).encode(text))


@pytest.mark.parametrize("spelt", [lambda left, right: [left, right], lambda left, right: f"{left} {right}"])
def test_merges_in_both_spellings(spelt: Any) -> None:
    model = byte_level_spec(PAIRS)["model"]
    table = merge_table({**model, "merges": [spelt(*pair) for pair in PAIRS]})
    assert table is not None and list(zip(table.lefts, table.rights, strict=True)) == PAIRS
    assert table.rows.tolist() == [[model["vocab"][name] for name in (a, b, a + b)] for a, b in PAIRS]


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab": [["a", 0.0]]},
        {"vocab": {}},
        {"vocab": {"a": 0, "b": 1.0}},
        {"vocab": {"a": 0, "b": True}},
        {"vocab": {"a": -1}},
        {"vocab": {"a": 2**32 - 1}},
        {"merges": None},
        {"merges": ["a b c"]},
        {"merges": ["ab"]},
        {"merges": ["a b", ["a", "b"]]},
        {"merges": [["a", "b", "c"]]},
        {"merges": [["a", "x" * 9]]},
        {"merges": [["a", ["b"]]]},
        {"merges": [["c", "b"]]},
    ],
)
def test_an_irregular_model_is_left_to_the_library(changes: dict[str, Any]) -> None:
    spec = byte_level_spec(PAIRS)
    spec["model"].update(changes)
    assert merge_table(spec["model"]) is None
    assert verdict(lambda: load_tokenizer_json(json.dumps(spec).encode())) == verdict(
        lambda: HuggingFaceTokenizer(spec)
    )


def verdict(load: Callable[[], Tokenizer]) -> str:
    try:
        return load().engine
    except ValueError as error:
        return str(error)


@given(
    names=st.lists(st.sampled_from(["a", "zz", END, "<1>", "<2>", "<3>", "abc"]), max_size=8),
    ids=st.lists(st.integers(0, 400), min_size=8, max_size=8),
    gap=st.sampled_from([0, 1, 50]),
)
def test_added_tokens_get_the_ids_that_the_library_gives_them(names: list[str], ids: list[int], gap: int) -> None:
    """Whatever a file says: declared ids that clash, leave gaps, or come twice."""
    tokens = [added(id_, name, special=name not in ("a", "abc")) for name, id_ in zip(names, ids, strict=False)]
    spec = byte_level_spec(PAIRS, added_tokens=tokens)
    spec["model"]["vocab"]["zz"] = len(spec["model"]["vocab"]) + gap
    library = build(spec)
    found, expected = added_ids(tokens, spec["model"]["vocab"]), {name: library.token_to_id(name) for name in names}
    assert found == expected or (found is None and gap and "zz" in names)
    fast = load_spec(spec)
    assert {name: fast.token_id(name) for name in names} == expected


@one_commit_in_four
@pytest.mark.parametrize(
    ("whole", "normalizer"),
    sampled("reduced vocabularies", product((False, True), (None, "NFC")), 2, lambda cell: cell),
)
def test_a_reduced_file_gives_the_ids_of_the_whole(whole: bool, normalizer: str | None) -> None:
    kind = {"type": normalizer} if normalizer else None
    spec = byte_level_spec(all_pairs("".join(BATTERY)), normalizer=kind, model={"ignore_merges": whole})
    for number in range(2000):
        spec["model"]["vocab"][f"never-in-it-{number}"] = len(spec["model"]["vocab"])
    table = merge_table(spec["model"])
    assert table is not None
    part = reduced(spec, table)
    assert 256 < len(part["model"]["vocab"]) < len(spec["model"]["vocab"]) - 2000
    whole_library, library = build(spec), build(part)
    for text in BATTERY:
        assert library.encode(text).ids == whole_library.encode(text).ids


def test_a_reference_that_disagrees_with_the_kernel_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = byte_level_spec(PAIRS)
    assert isinstance(load_spec(spec), ByteLevelTokenizer)
    encode = ByteLevelTokenizer.encode
    monkeypatch.setattr(ByteLevelTokenizer, "encode", lambda self, text: encode(self, text)[:-1])
    assert isinstance(load_spec(spec), HuggingFaceTokenizer)


def test_a_token_outside_the_alphabet_is_no_piece() -> None:
    """With ignore_merges a piece is looked up as it is spelt: é is spelt with two characters."""
    vocab = byte_level_spec(PAIRS)["model"]["vocab"]
    model = {"ignore_merges": True, "vocab": {**vocab, "中": len(vocab), " ab": len(vocab) + 1}}
    spec = byte_level_spec(PAIRS, model=model)
    fast, reference = load_spec(spec), HuggingFaceTokenizer(spec)
    assert fast.engine == "byte-level-bpe"
    for text in ("中", " ab", "ab 中中"):
        np.testing.assert_array_equal(fast.encode(text), reference.encode(text))
    assert set(byte_alphabet()).isdisjoint("中 ") and merge_pairs(spec["model"]) == PAIRS
