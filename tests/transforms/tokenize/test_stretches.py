"""Texts with control tokens: the ids are those of Hugging Face's library, which cuts texts at added tokens itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from refinery.transforms.core.spans.marks import Marks
from refinery.transforms.tokenize.encode_marked import trained_tokens
from refinery.transforms.tokenize.stretches import Stretches, load_stretches, read_stretches
from refinery.transforms.tokenize.token_spans import Spans
from tests.sampling import examples
from tests.transforms.tokenizer_files import added, byte_level_spec, sentencepiece_model

PARTS = st.lists(st.sampled_from(["<end>", "<turn>", "an", " a", "a", "ö", "\n", "<", "🍎"]), max_size=12)


def spec_with(**changes: Any) -> dict[str, Any]:
    spec = byte_level_spec([("a", "n"), ("Ġ", "a")])
    first = len(spec["model"]["vocab"])
    spec["added_tokens"] += [{**added(first + n, name), **changes} for n, name in enumerate(("<end>", "<turn>"))]
    return spec


def characters(scheme: str) -> dict[str, Any]:
    """BPE over characters with a space of its own in front, as SentencePiece puts it."""
    vocab = {name: number for number, name in enumerate(["<unk>", "<end>", "<turn>", "▁", "a", "n", "\n", "<", "▁a"])}
    vocab |= {f"<0x{byte:02X}>": len(vocab) + byte for byte in range(256)}
    spec = byte_level_spec([])
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
    decoder = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
    model = {**spec["model"], "vocab": vocab, "merges": [["▁", "a"]], "byte_fallback": True, "unk_token": "<unk>"}
    names = [added(0, "<unk>"), added(1, "<end>"), added(2, "<turn>")]
    return {**spec, "pre_tokenizer": step, "decoder": decoder, "model": model, "added_tokens": names}


SPECS = {"bytes": spec_with(), "first": characters("first"), "always": characters("always")}


def load(spec: dict[str, Any]) -> Stretches:
    return read_stretches(json.dumps(spec).encode(), "tokenizer.json")


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=examples(60), deadline=None)
@given(parts=PARTS)
def test_ids_are_the_librarys(name: str, parts: list[str]) -> None:
    text = "".join(parts)
    stretches, library = LOADED[name], Library.from_str(json.dumps(SPECS[name]))
    ids, spans = stretches.encode(text, stretches.find(text))
    expected = library.encode(text, add_special_tokens=False)
    assert ids.tolist() == expected.ids
    assert len(spans.starts) == len(ids) and (np.diff(spans.starts) >= 0).all()
    if name == "bytes":
        assert stretches.decode(ids) == (text, stretches.find(text))


LOADED = {name: load(spec) for name, spec in SPECS.items()}


def test_typed_tokens_are_text() -> None:
    stretches = LOADED["bytes"]
    text = "a<end>b<end>"
    typed, _ = stretches.encode(text, [(7, 12)])
    assert typed.tolist().count(stretches.controls["<end>"].id) == 1
    assert stretches.decode(typed) == (text, [(7, 12)])
    with pytest.raises(ValueError, match="control token: 'a<end' given"):
        stretches.encode(text, [(0, 5)])


def test_white_space_that_a_token_takes() -> None:
    spec = spec_with(rstrip=True, lstrip=True)
    text = "a <end>\n n<turn> "
    ids, _ = load(spec).encode(text, [(2, 7), (10, 16)])
    assert ids.tolist() == Library.from_str(json.dumps(spec)).encode(text, add_special_tokens=False).ids


def test_a_sentencepiece_model_names_no_control_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(sentencepiece_model())
    with pytest.raises(ValueError, match=r"the tokenizer\.json of that model is needed"):
        load_stretches(str(path))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.integers(0, 3), max_size=10), st.sets(st.integers(0, 20), max_size=6))
def test_trained_tokens_have_trained_characters_alone(widths: list[int], borders: set[int]) -> None:
    ends = np.cumsum([*widths, 1])
    spans = Spans((ends - [*widths, 1]).astype(np.int32), ends.astype(np.int32))
    places = sorted(borders)
    trained = tuple(zip(places[::2], places[1::2], strict=False))
    mask, halves = trained_tokens(spans, Marks(trained))
    expected_halves = 0
    for at, (start, end) in enumerate(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)):
        characters = range(start, max(end, start + 1))
        owners = {next((n for n, (a, b) in enumerate(trained) if a <= place < b), -1) for place in characters}
        assert bool(mask[at]) == (len(owners) == 1 and -1 not in owners)
        expected_halves += len(owners) > 1
    assert halves == expected_halves
