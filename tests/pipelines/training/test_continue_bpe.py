"""A continued tokenizer: ids and merges stay, new ones follow, and the fast engine takes it."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.pipelines.training.continue_bpe import _character, _id_of
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, check_training, train_tokenizer
from refinery.transforms.tokenize.byte_level_bpe import LLAMA3, QWEN2
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer, load_tokenizer_json, merge_pairs
from tests.transforms.tokenizer_files import END, added, byte_level_spec, sentencepiece_model, split_by, write

OLD = ["river stone village miller wheel", "the cat sat on the mat"]
NEW = ["ποταμός πέτρα χωριό μυλωνάς τροχός", "quantum chromodynamics and electrodynamics", "the river 1234"]


def texts(lines: list[str], count: int = 40) -> list[str]:
    generator = random.Random(3)
    return [" ".join(generator.choices(" ".join(lines).split(), k=30)) + f" {i}" for i in range(count)]


def continued(tmp_path: Path, base: str, vocab_size: int, **more: Any) -> dict[str, Any]:
    output = tmp_path / "continued.json"
    params = TrainTokenizerParams(vocab_size, base=base, held_out=0, **more)
    train_tokenizer(texts(NEW), str(output), params, overwrite=True)
    spec: dict[str, Any] = json.loads(output.read_text())
    return spec


def test_ids_and_merges_stay(tmp_path: Path) -> None:
    base = str(tmp_path / "base.json")
    train_tokenizer(texts(OLD), base, TrainTokenizerParams(300, held_out=0))
    old = json.loads(Path(base).read_text())
    size = max(old["model"]["vocab"].values()) + 1
    new = continued(tmp_path, base, size + 40, special_tokens=("<|pad|>",))
    names = {id_: name for name, id_ in new["model"]["vocab"].items()}
    assert new["model"]["vocab"].items() >= old["model"]["vocab"].items()
    assert sorted(names) == list(range(size + 40))
    assert new["added_tokens"][:1] == old["added_tokens"] and new["added_tokens"][1]["content"] == "<|pad|>"
    before = merge_pairs(old["model"])
    assert merge_pairs(new["model"])[: len(before)] == before and len(merge_pairs(new["model"])) >= len(before) + 39
    fast, reference = load_tokenizer(str(tmp_path / "continued.json")), HuggingFaceTokenizer(new)
    assert fast.engine == "byte-level-bpe" and fast.vocab_size == size + 40 and fast.token_id("<|pad|>") == size
    for text in [*texts(OLD, 5), *texts(NEW, 5)]:
        np.testing.assert_array_equal(fast.encode(text), reference.encode(text))
        assert fast.decode(fast.encode(text)) == text
    once = load_tokenizer(base)
    assert all(len(fast.encode(text)) < 0.8 * len(once.encode(text)) for text in texts(NEW, 5))


@pytest.mark.parametrize("pattern", [LLAMA3, QWEN2])
def test_other_splittings_and_holes_between_ids(tmp_path: Path, pattern: str) -> None:
    """The base's special token is not in its model, as in Llama 3; NFC and whole words stay what they were."""
    spec = byte_level_spec(
        [("t", "h"), ("th", "e")],
        pre_tokenizer=split_by(pattern),
        normalizer={"type": "NFC"},
        model={"ignore_merges": True},
        added_tokens=[added(0, END), added(259, "<|x|>")],
    )
    new = continued(tmp_path, write(tmp_path / "base.json", spec), 320)
    assert new["model"]["vocab"].items() >= spec["model"]["vocab"].items()
    learned = set(new["model"]["vocab"].values()) - set(spec["model"]["vocab"].values())
    assert learned == set(range(259, 320))
    fast, reference = load_tokenizer_json(json.dumps(new).encode()), HuggingFaceTokenizer(new)
    assert fast.engine == "byte-level-bpe"
    assert fast.token_id("<|x|>") == reference.token_id("<|x|>") == HuggingFaceTokenizer(spec).token_id("<|x|>")
    for text in texts(NEW, 5):
        np.testing.assert_array_equal(fast.encode(text), reference.encode(text))


def test_another_way_to_an_entry_takes_no_id(tmp_path: Path) -> None:
    """ "he" cannot be reached as long as "th" comes first; the merge that makes it again gets its old id."""
    spec = byte_level_spec([("t", "h"), ("h", "e"), ("t", "he")])
    base = write(tmp_path / "base.json", spec)
    output = tmp_path / "continued.json"
    train_tokenizer(["the the the the"] * 2, str(output), TrainTokenizerParams(300, base=base, held_out=0))
    new = json.loads(output.read_text())
    assert new["model"]["vocab"]["the"] == spec["model"]["vocab"]["the"]
    assert merge_pairs(new["model"])[3] == ("th", "e")
    assert load_tokenizer(str(output)).encode("the").tolist() == [spec["model"]["vocab"]["the"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"type": "WordPiece"}}, "base: a tokenizer given that is not a byte-level BPE over all bytes"),
        ({"pre_tokenizer": None}, "base: a tokenizer given that is not a byte-level BPE over all bytes"),
        (
            {"added_tokens": [added(257 + i, f"<|{i}|>") for i in range(60)]},
            "vocab_size: 310 given, but the base has 317 ids",
        ),
        ({"added_tokens": [added(0, "<|pad|>")]}, "special_tokens: '<|pad|>' given, which the base has already"),
    ],
)
def test_what_cannot_be_continued(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    base = write(tmp_path / "base.json", byte_level_spec([], **change))
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        check_training(str(tmp_path / "t.json"), TrainTokenizerParams(310, base=base, special_tokens=("<|pad|>",)))


def test_only_byte_level_files_are_continued(tmp_path: Path) -> None:
    (tmp_path / "t.model").write_bytes(sentencepiece_model())
    for base, message in (("t.model", "a byte-level tokenizer.json is allowed"), ("none.json", "cannot be read")):
        with pytest.raises(ValueError, match=message):
            check_training(str(tmp_path / "new.json"), TrainTokenizerParams(base=str(tmp_path / base)))
    base = write(tmp_path / "base.json", byte_level_spec([]))
    with pytest.raises(ValueError, match=r"a continued tokenizer is a tokenizer\.json"):
        check_training(str(tmp_path / "new.model"), TrainTokenizerParams(base=base))


def test_a_character_for_every_id() -> None:
    assert [_id_of(_character(id_)) for id_ in range(0xE000)] == list(range(0xE000))
    assert "\n" not in map(_character, range(300))
