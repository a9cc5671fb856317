"""The lane of conversations from files to batches: masks in provenance, packed rows, batches, views and exports are
those of the texts, computed here from the turns alone."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader import TokenStream
from refinery.loader.order.batch_stages import BatchStage
from refinery.loader.order.length_stages import LengthStage
from refinery.loader.packing.buckets import LengthBuckets
from refinery.loader.packing.packing import BestFitParams
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.loss_runs import mask_of
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.packed.packed_stream import PackedStream
from refinery.loader.stream.state import StateError
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.checks import loss_masks
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.transforms.tokenize.chat.chats import TURNS, make_tokenizer, turns

LENGTH = 160
Documents = list[tuple[tuple[int, ...], tuple[int, ...]]]  # ids, and places of trained tokens


def refinery(*words: object) -> int:
    return int(execute(list(map(str, words))))


def conversations() -> list[dict[str, Any]]:
    found = [turns(f"Question {n}?", f"Answer {n * 7}.", f"And {n}?", "Yes." * (n % 4 + 1)) for n in range(12)]
    found[3]["messages"][1]["weight"] = 0
    found[5]["messages"][1]["content"] = "Write to jane.doe@company.com"
    found[6]["messages"][0]["content"] = "AKIAIOSFODNN7EXAMPLQ is my key <end>"
    return found


def expected_text(record: dict[str, Any]) -> tuple[str, list[tuple[str, bool]]]:
    """The text of a record after redaction, and its parts: (part, whether it is trained)."""
    parts: list[tuple[str, bool]] = []
    for message in record["messages"]:
        is_trained = message["role"] == "assistant" and message.get("weight") != 0
        content = message["content"].replace("jane.doe@company.com", "<EMAIL>")
        content = content.replace("AKIAIOSFODNN7EXAMPLQ", "API_KEY_REDACTED")
        parts += [("<turn>", False), (f"{message['role']}\n", False), (content, is_trained)]
        parts += [("<end>", is_trained), ("\n", False)]
    return "".join(part for part, _ in parts), parts


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat")
    make_tokenizer(folder, TURNS)
    records = conversations()
    lines = [*map(json.dumps, records[:6]), '{"messages": []}', '{"me']
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    pq.write_table(pa.Table.from_pylist(records[6:]), folder / "b.parquet")
    recipe = {
        "name": "chat",
        "lane": "chat",
        "sources": [{"name": "s", "paths": [str(folder / "a.jsonl"), str(folder / "b.parquet")]}],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "packed": {"length": LENGTH},
        "shards": {"validation": 0.0},
        "rejects": {"rate": 1.0},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


@pytest.fixture(scope="module")
def corpus(inputs: Path) -> Path:
    assert refinery("refine", inputs / "recipe.yaml", "--workers", 0, "--output", inputs / "out", "--quiet") == 0
    return inputs / "out"


def published(prefix: Path) -> Documents:
    """The documents in shards, with the masks of the provenance."""
    found = []
    for shard in Corpus(str(prefix)).shards():
        for number, runs in enumerate(shard.provenance()["trained_tokens"].to_pylist()):
            ids = shard[number].tolist()
            found.append((tuple(ids), tuple(np.flatnonzero(mask_of(runs, len(ids), "")).tolist())))
    return sorted(found)


def delivered(stream: Any) -> Documents:
    """The documents in a stream's batches, with the places that labels predict."""
    found = []
    for batch in stream:
        for ids, labels, loss, documents in zip(
            *(batch[name] for name in ("input_ids", "labels", "loss_mask", "doc_ids")), strict=True
        ):
            assert ((labels != -100) == loss).all()
            for number in range(documents.max() + 1):
                places = np.flatnonzero(documents == number)
                trained = places[loss[places]]
                assert (labels[trained] == ids[trained + 1]).all()
                found.append((tuple(ids[places].tolist()), tuple((np.flatnonzero(loss[places]) + 1).tolist())))
    return sorted(found)


def test_shards_have_the_masks_of_the_turns(inputs: Path, corpus: Path) -> None:
    tokenizer = load_tokenizer(str(inputs / "tokenizer.json"))
    expected = []
    for record in conversations():
        ids: list[int] = []
        mask: list[int] = []
        for part, is_trained in expected_text(record)[1]:
            control = tokenizer.token_id(part) if part in ("<turn>", "<end>") else None
            some = [control] if control is not None else tokenizer.encode(part).tolist()
            mask += range(len(ids), len(ids) + len(some)) if is_trained else ()
            ids += some
        expected.append((tuple(ids), tuple(mask)))
    assert published(corpus) == sorted(expected)
    funnel = {row["stage"]: row for row in Corpus(str(corpus)).manifest.funnel}
    assert {name: each["documents"] for name, each in funnel["read"]["dead"].items()} == {"BadJson": 1}
    assert {name: each["documents"] for name, each in funnel["chat"]["dropped"].items()} == {"no-turns": 1}


def test_batches_have_them(corpus: Path) -> None:
    flags: dict[str, Any] = {"epochs": 1, "loss_mask": True, "doc_ids": True}
    expected = published(corpus)
    assert delivered(PackedStream(str(corpus), LENGTH, 2, **flags)) == expected
    assert delivered(TokenStream(str(corpus), LENGTH, 2, packing="best_fit", **flags)) == expected
    trained = sum(len(places) for _, places in expected)
    for packing in ("concatenate", BestFitParams(cut=True)):
        batches = list(TokenStream(str(corpus), 16, 2, packing=packing, **flags))
        assert sum(int(batch["loss_mask"].sum()) for batch in batches) == trained
    # Rows of one document each, in batches of other widths and sizes; and labels that share memory with the inputs.
    buckets = LengthBuckets([LENGTH // 2, LENGTH])
    ramp = [BatchStage(1, steps=3), BatchStage(3)]
    assert delivered(TokenStream(str(corpus), LENGTH, ramp, packing=buckets, shuffle=False, **flags)) == expected
    for packing in ("best_fit", buckets):
        batches = list(TokenStream(str(corpus), LENGTH, ramp, packing=packing, mask_labels=False, **flags))
        assert sum(int(batch["loss_mask"].sum()) for batch in batches) == trained
        for batch in batches:
            assert (batch["input_ids"] >= 0).all()
            assert (batch["labels"][:, :-1] == batch["input_ids"][:, 1:]).all()
    stages = [LengthStage(LENGTH // 2, 400), LengthStage(LENGTH)]
    with pytest.raises(ValueError, match=r"^sequence_length: stages given with a corpus of loss masks"):
        TokenStream(str(corpus), stages, 2, packing="best_fit", **flags)
    for packing in ("concatenate", BestFitParams(cut=True)):
        batches = list(TokenStream(str(corpus), stages, 2, packing=packing, **flags))
        assert sum(int(batch["loss_mask"].sum()) for batch in batches) == trained
    unshifted = TokenStream(str(corpus), LENGTH, 2, packing="best_fit", labels="unshifted", **flags)
    assert sum(int((batch["labels"] != -100).sum()) for batch in unshifted) == trained


def test_conversations_are_cut_on_request_alone(corpus: Path) -> None:
    with pytest.raises(ValueError, match="packing: none given of a corpus with loss masks"):
        TokenStream(str(corpus), 16, 2)
    with pytest.raises(ValueError, match="sequence_length: 16 given, but the corpus has loss masks and documents"):
        TokenStream(str(corpus), 16, 2, packing="best_fit")


def test_verify_compares_masks(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refinery("verify", corpus, "--quiet") == 0
    found = Corpus(str(corpus))
    (shard,) = found.manifest.shards
    check = partial(loss_masks.check_masks, open_store(str(corpus)), found.manifest, shard)
    assert list(check()) == []
    starts, ends = loss_masks.load_runs(found.store, shard)
    for runs, said in (
        ((starts + 1, ends), "12 documents have other loss masks in packed rows"),
        ((starts[2:], ends[2:]), "1 documents train no token, such as document 0"),
        ((np.append(0, starts), np.append(1, ends)), "the first token of document 0 is trained"),
    ):
        monkeypatch.setattr(loss_masks, "load_runs", lambda store, shard, runs=runs: runs)
        assert any(said in line for line in check()), list(check())


def test_views_and_exports_carry_them(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = {"name": "v", "corpora": {"a": str(corpus)}, "domains": [{"name": "d", "parts": ["a"], "times": 2}]}
    (tmp_path / "mix.yaml").write_text(yaml.safe_dump(mix))
    assert refinery("mix", tmp_path / "mix.yaml", "--output", tmp_path / "view") == 0
    flags: dict[str, Any] = {"epochs": 1, "loss_mask": True, "doc_ids": True, "packing": "best_fit"}
    assert delivered(TokenStream(str(tmp_path / "view"), LENGTH, 2, **flags)) == sorted(published(corpus) * 2)
    export = "export", corpus, "--workers", 0
    assert refinery(*export, "--format", "jsonl", "--output", tmp_path / "e") == 0
    assert refinery("verify", tmp_path / "e") == 0
    capsys.readouterr()
    for options in (("--format", "torch"), ("--format", "jsonl", "--fields", "id,text"), ("--format", "megatron")):
        assert refinery(*export, *options, "--output", tmp_path / "no") != 0
        assert "loss masks" in capsys.readouterr().err
    assert refinery("retokenize", corpus, "--tokenizer", "t", "--output", tmp_path / "r") != 0
    assert "template" in capsys.readouterr().err


def test_a_takedown_keeps_them(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").write_text(ids_of(corpus)[0] + "\n")
    command = "remove", corpus, "--documents", tmp_path / "gone", "--output", tmp_path / "new", "--workers", 0
    assert refinery(*command) == 0
    flags: dict[str, Any] = {"epochs": 1, "loss_mask": True, "doc_ids": True}
    after = published(tmp_path / "new")
    assert len(after) == 11 and set(after) < set(published(corpus))
    assert delivered(PackedStream(str(tmp_path / "new"), LENGTH, 2, **flags)) == after
    old = TokenStream(str(corpus), 16, 1, packing="concatenate")
    next(old)
    with pytest.raises(StateError, match="Its loss masks are those of the documents that are left"):
        TokenStream(str(tmp_path / "new"), 16, 1, packing="concatenate").load_state_dict(old.state_dict())


def ids_of(prefix: Path) -> list[str]:
    return [id_.hex() for shard in Corpus(str(prefix)).shards() for id_ in shard.provenance()["id"].to_pylist()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": {"path": "t", "eos": "auto"}}, "tokenizer.eos: 'auto' given, but the template"),
        ({"chat": {"too_long": "keep"}}, "chat.too_long: documents of more than 160 tokens"),
        ({"chat": {"max_tokens": 161}}, "chat.too_long: documents of more than 160 tokens"),
    ],
)
def test_recipes_that_cannot_be(inputs: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    data = yaml.safe_load((inputs / "recipe.yaml").read_text()) | changes
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises((RecipeError, ValueError), match=message):
        list(load_recipe(str(tmp_path / "r.yaml")).active("shards"))
