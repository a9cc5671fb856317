import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.pipelines.training.train_tokenizer import (
    END_OF_TEXT,
    TokenizerMetrics,
    TrainTokenizerParams,
    check_training,
    cut_runs,
    hold_out,
    sentences,
    train_tokenizer,
)
from refinery.pipelines.training.vocabulary_report import measure
from refinery.transforms.tokenize.encode import TokenizerParams, check_tokenizer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

WORDS = [
    "river",
    "stone",
    "village",
    "miller",
    "wheel",
    "garden",
    "winter",
    "carries",
    "slowly",
    "under",
    "Été",
    "naïve",
]
LEARN = TrainTokenizerParams(vocab_size=400, held_out=0.2)


def some_texts(count: int = 60) -> list[str]:
    generator = random.Random(7)
    return [" ".join(generator.choices(WORDS, k=40)) + f"\n\n  item {i}.\n" for i in range(count)]


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_same_bytes_in_any_order_and_process(tmp_path: Path, name: str) -> None:
    texts = some_texts()
    train_tokenizer(texts, str(tmp_path / name), LEARN)
    expected = (tmp_path / name).read_bytes()
    train_tokenizer(reversed(texts), str(tmp_path / name), LEARN, overwrite=True)
    assert (tmp_path / name).read_bytes() == expected
    again = tmp_path / f"again{name[-6:]}"
    script = (
        "from refinery.pipelines.training.train_tokenizer import *; "
        f"train_tokenizer({texts!r}, {str(again)!r}, TrainTokenizerParams(vocab_size=400, held_out=0.2))"
    )
    environment = {"PYTHONHASHSEED": "5", "RAYON_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, cwd=root, env=environment, timeout=120)
    assert again.read_bytes() == expected
    assert {path.name for path in tmp_path.iterdir()} == {name, again.name}


def test_byte_level_is_what_the_fast_engine_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "tokenizer.json")
    metrics = train_tokenizer(some_texts(), path, LEARN)
    info = check_tokenizer(TokenizerParams(path=path))
    assert (info.engine, info.lossless, info.vocab_size, info.bos_id) == (
        "byte-level-bpe",
        True,
        metrics.vocab_size,
        None,
    )
    tokenizer = load_tokenizer(path)
    assert tokenizer.token_id(END_OF_TEXT) == info.eos_id == 0
    assert metrics.bytes_per_token is not None and metrics.bytes_per_token > 2
    assert metrics.held_out_bytes + metrics.trained_bytes == sum(len(text.encode()) for text in some_texts())
    begun, first, *rest = capsys.readouterr().out.splitlines()
    assert begun == f"learning 400 entries from {metrics.trained_bytes:,} bytes of text"
    assert first == f"{path}: {metrics}"
    assert bool(rest) is (metrics.vocab_size < 400) and all("fewer than the requested 400" in line for line in rest)
    assert "bytes per token on" in str(metrics)


def test_sentencepiece_keeps_lines_and_spaces(tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.model")
    metrics = train_tokenizer(some_texts(), path, LEARN)
    info = check_tokenizer(TokenizerParams(path=path, bos="auto"))
    assert (info.engine, info.vocab_size, info.bos_id, info.eos_id) == ("sentencepiece", 400, 1, 2)
    assert metrics.vocab_size == 400
    tokenizer = load_tokenizer(path)
    for text in ("river  stone\n\n  Été\t\u3000中文😀 ", " a", "a "):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_seed_chooses_what_is_held_out(tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.json")
    sizes = {
        train_tokenizer(some_texts(), path, TrainTokenizerParams(400, seed, 0.2), overwrite=True).held_out_bytes
        for seed in range(4)
    }
    assert len(sizes) > 1


def test_a_single_text_is_enough(tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.json")
    metrics = train_tokenizer(["one text"], path, TrainTokenizerParams(held_out=0.99))
    assert metrics.trained_bytes == 8
    assert load_tokenizer(path).decode(load_tokenizer(path).encode("other text")) == "other text"
    assert "too little" in str(TokenizerMetrics(257, 8, 0, None))


@pytest.mark.parametrize(
    ("texts", "name", "message"),
    [
        ([], "t.json", "texts: none given"),
        (["", ""], "t.model", "texts: none given"),
        (["a"], "t.bin", "output: 't.bin' given, a name ending in .json or .model is allowed"),
        (["a b"], "t.model", "vocab_size: 400 given, SentencePiece refuses it"),
    ],
)
def test_what_cannot_be_learned_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        train_tokenizer(texts, name, LEARN)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vocab_size": 256}, "vocab_size: 256 given, 300 or more is allowed"),
        ({"vocab_size": 3_000_000}, "vocab_size: 3000000 given, 300 or more is allowed, up to 2000000"),
        ({"held_out": 1}, "held_out: 1 given, a number from 0 to below 1 is allowed"),
        ({"special_tokens": ("a", "a")}, "special_tokens: 'a' given twice"),
        ({"special_tokens": ("\n",)}, r"special_tokens: '\\n' given, up to 100 printable characters are allowed"),
        ({"vocab_size": 300, "special_tokens": tuple(map(str, range(44)))}, "special_tokens: 44 given, fewer than"),
    ],
)
def test_impossible_parameters(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainTokenizerParams(**values)


def test_long_runs_are_cut() -> None:
    assert cut_runs("a b\n c") == "a b\n c"
    assert cut_runs("a" * 2500) == "\n".join(["a" * 1000, "a" * 1000, "a" * 500])
    assert cut_runs("a" + " " * 5000 + "b") == "a" + " " * 1000 + "b"
    assert [len(part) for part in sentences(["x" * 2500 + "\n\0"])] == [1000, 1000, 500, 1]


def test_hostile_texts_are_learned_from(tmp_path: Path) -> None:
    texts = ["a" * 300_000, "\0" * 1000, " " * 100_000, "\ufeff\u200b", "<|endoftext|><s>", *some_texts(20)]
    for name in ("t.json", "t.model"):
        metrics = train_tokenizer(texts, str(tmp_path / name), LEARN)
        assert metrics.vocab_size <= 400
    assert json.loads((tmp_path / "t.json").read_text())["model"]["type"] == "BPE"


@pytest.mark.parametrize("name", ["t.json", "t.model"])
def test_special_tokens_never_come_from_text(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    train_tokenizer(some_texts(), path, TrainTokenizerParams(400, special_tokens=("<|pad|>", "<|user|>")))
    tokenizer = load_tokenizer(path)
    ids = {tokenizer.token_id("<|pad|>"), tokenizer.token_id("<|user|>")}
    assert len(ids) == 2 and None not in ids
    assert not ids & set(tokenizer.encode("<|pad|> river <|user|>").tolist())


def test_nothing_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"t\.json exists; choose another name, or give --overwrite to replace it"):
        train_tokenizer(some_texts(), str(path), LEARN)
    assert path.read_text() == "mine"
    train_tokenizer(some_texts(), str(path), LEARN, overwrite=True)
    assert load_tokenizer(str(path)).token_id(END_OF_TEXT) == 0


def test_no_folder_is_taken_for_a_file(tmp_path: Path) -> None:
    """Said before anything is sampled. Folders that are not there yet are made."""
    (tmp_path / "f.json").mkdir()
    (tmp_path / "t.json").write_text("mine")
    for path, message in (
        (tmp_path / "f.json", "f.json is a folder"),
        (tmp_path / "t.json/x.json", "t.json is a file"),
    ):
        with pytest.raises(ValueError, match=message):
            check_training(str(path), LEARN)
    train_tokenizer(some_texts(), str(tmp_path / "new" / "folders" / "t.json"), LEARN)
    assert (tmp_path / "new" / "folders" / "t.json").exists()


def test_what_each_source_gave(tmp_path: Path) -> None:
    """Two sources without a common word: what is learned from one of them is used in no other."""
    latin, greek = ["river stone village " * 30] * 20, ["ποταμός πέτρα χωριό " * 30] * 20
    texts = {"latin": [f"{i} {text}" for i, text in enumerate(latin)], "greek": greek, "none": []}
    said: list[str] = []
    metrics = train_tokenizer(texts, str(tmp_path / "t.json"), TrainTokenizerParams(330, held_out=0), say=said.append)
    of = {own.source: own for own in metrics.sources}
    tokenizer = load_tokenizer(str(tmp_path / "t.json"))
    seen = {
        name: set(np.concatenate([tokenizer.encode(text) for text in of_it])) for name, of_it in texts.items() if of_it
    }
    assert (of["latin"].used, of["greek"].used, of["none"].used) == (len(seen["latin"]), len(seen["greek"]), 0)
    assert of["latin"].only == len(seen["latin"] - seen["greek"]) and of["greek"].only == len(
        seen["greek"] - seen["latin"]
    )
    assert (
        of["latin"].most + of["greek"].most == len(seen["latin"] | seen["greek"]) == metrics.vocab_size - metrics.unused
    )
    assert of["latin"].unknown == 0 and of["none"].bytes_per_token is None
    size, tokens = (
        sum(f(text) for text in texts["greek"]) for f in (lambda t: len(t.encode()), lambda t: len(tokenizer.encode(t)))
    )
    assert of["greek"].bytes_per_token == size / tokens
    assert [line.split()[0] for line in said[2:6]] == ["source", "latin", "greek", "none"]
    assert said[-1] == "no text of none is left to learn from: `refinery try` shows what each rule measures"


def test_bytes_of_unknown_characters_are_counted(tmp_path: Path) -> None:
    """Of what was learned from Latin letters, a Chinese character costs three single bytes."""
    path = str(tmp_path / "t.json")
    train_tokenizer(some_texts(), path, TrainTokenizerParams(330, held_out=0))
    found = measure(load_tokenizer(path), {"a": ["中"], "b": ["river"]}, {"a": [], "b": []})
    assert [own.unknown for own in found.sources] == [1.0, 0.0]


def test_a_long_text_is_not_held_out() -> None:
    texts = ["x" * 4000, *(f"y{i}" * 5 for i in range(100))]
    for seed in range(8):
        held_out = hold_out(texts, TrainTokenizerParams(held_out=0.2, seed=seed))
        assert "x" * 4000 not in held_out  # it alone is more than twice a fifth
        assert 5 < len(held_out) < 40
