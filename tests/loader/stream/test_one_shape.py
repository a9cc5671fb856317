"""Batches of one run keep one shape: a second one makes a compiled model compile again, or hangs a collective.

Over every option of a stream. Only what is made for other shapes has some, and then those that were asked for.
"""

import itertools
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import (
    BatchStage,
    BestFitParams,
    DecodedParams,
    FillInMiddleParams,
    LengthBuckets,
    LengthStage,
    MixStage,
    NodeStream,
    OrderParams,
    PackedStream,
    RemoteParams,
    TokenStream,
)
from refinery.loader.stream.options import FlatOptions
from refinery.pipelines.corpus.mix.make_view import make_view
from refinery.pipelines.corpus.mix.recipe import load_mix
from refinery.pipelines.progress.work import Work
from tests.corpus_factory import build_corpus
from tests.loader.range_server import range_server
from tests.loader.streams import TEXTS
from tests.mix_factory import mix_corpus, write_recipe
from tests.packed_factory import add_packed_rows

L, B = 24, 3
SHARD = "train/web/shard-00000-of-00004.bin"
ARRAYS: dict[str, Any] = dict.fromkeys(
    ("loss_mask", "position_ids", "doc_ids", "cu_seqlens", "domain_ids", "sample_ids"), True
) | {"cu_seqlens_size": B * L + 1}
INFILL = FillInMiddleParams(258, 259, 260, vocab_size=300, min_tokens=2, rate=1.0)
CODEC = (lambda text: list(text.encode()), lambda ids: bytes(ids).decode(errors="replace"))
IGNORED: dict[str, Any] = {"ignore_cross_document": True, "ignore_eos": True}
# Name -> options of TokenStream. All are read for two epochs, whose last steps have rows to fill up.
ONE_SHAPE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "all arrays": ARRAYS | IGNORED,
    "labels without a copy": ARRAYS | IGNORED | {"mask_labels": False},
    "unshifted": ARRAYS | {"labels": "unshifted"},
    "a part of each row": ARRAYS | {"cp_size": 2, "cp_rank": 1, "cp_layout": "contiguous"},
    "fill in the middle": ARRAYS | {"fill_in_middle": INFILL},
    "fill in the middle of texts": ARRAYS | {"fill_in_middle": INFILL, "codec": CODEC},
    "best fit": ARRAYS | {"packing": "best_fit"},
    "best fit, a part of each row": ARRAYS | {"packing": BestFitParams(block=50, repack=False), "cp_size": 2},
    "concatenated": {"packing": "concatenate"},
    "in order": {"shuffle": False},
    "another order": {"order": OrderParams(block=3, lanes=4, window=2)},
    "a subset": ARRAYS | {"subset": 0.4},
    "rows of a subset": {"subset": 5, "packing": "best_fit"},
    "a shard": ARRAYS | {"shards": [SHARD]},
    "weights": ARRAYS | {"weights": {"web": 1, "code": 3}},
    "stages of weights": {"weights": [MixStage({"web": 1}, tokens=9 * L), MixStage({"web": 1, "code": 1})]},
    "weights, best fit": ARRAYS | {"weights": {"web": 1, "code": 3}, "packing": "best_fit"},
    "loops": {"loop": "epoch"},
    "made ahead": ARRAYS | {"prefetch": 2},
    "damage is skipped": ARRAYS | {"on_damage": "skip"},
    "a rank": ARRAYS | {"rank": 1, "world_size": 3},
    "a worker": {"worker": 1, "workers": 2},
    "a row": ARRAYS | {"batch_size": 1, "cu_seqlens_size": L + 1},
    "more rows than there are": ARRAYS | {"batch_size": 200, "cu_seqlens_size": 200 * L + 1},
}
# What is made for several shapes, and the shapes of input_ids that it may have.
SEVERAL: dict[str, tuple[dict[str, Any], set[tuple[int, int]]]] = {
    "stages of lengths": ({"sequence_length": [LengthStage(12, 10 * L), LengthStage(L)]}, {(2 * B, 12), (B, L)}),
    "stages of rows": ({"batch_size": [BatchStage(1, steps=3), BatchStage(B)]}, {(1, L), (B, L)}),
    "buckets": ({"packing": LengthBuckets((8, 16))}, {(B, 8), (B, 16), (B, L)}),
}
TESTED_ELSEWHERE = {"remote"}  # test_of_other_streams reads over a network


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shapes")
    add_packed_rows(build_corpus(root / "corpus", TEXTS), L)
    part = mix_corpus(root / "part", 1, {("train", "web"): [60, 30]})
    recipe = write_recipe(root / "view.yaml", {"p": part}, [{"name": "all", "parts": ["p"], "where": "quality > 0.2"}])
    make_view(load_mix(str(recipe)), str(root / "view"), Work())
    return root


def shapes(batches: Iterable[Any]) -> set[tuple[tuple[str, Any, Any], ...]]:
    """Of every batch: name, shape and type of each array, names and values of the rest."""
    return {
        tuple((name, value.shape, value.dtype.str) if isinstance(value, np.ndarray) else (name, value, None)
              for name, value in sorted(batch.items()))
        for batch in batches
    }  # fmt: skip


def stream(location: Any, **options: Any) -> TokenStream:
    how: dict[str, Any] = {"sequence_length": L, "batch_size": B, "epochs": 2, "prefetch": 0}
    return TokenStream(location, **(how | options))


def both_epochs(batches: TokenStream) -> list[Any]:
    """All batches; with loop="epoch" those of both loops."""
    return [batch for _ in range(2) for batch in batches]


@pytest.mark.parametrize("name", ONE_SHAPE)
def test_a_run_has_one_shape(name: str, folder: Path) -> None:
    with stream(folder / "corpus", **ONE_SHAPE[name]) as batches:
        found = both_epochs(batches)
        counted = batches.telemetry.snapshot()["shapes"]
    assert len(found) > 1 and len(shapes(found)) == 1
    rows, length = found[0]["input_ids"].shape
    assert counted == {f"{rows} x {length}": len(found)}


@pytest.mark.parametrize("name", SEVERAL)
def test_other_shapes_are_those_that_were_asked_for(name: str, folder: Path) -> None:
    options, allowed = SEVERAL[name]
    with stream(folder / "corpus", **options) as batches:
        found = {batch["input_ids"].shape for batch in batches}
        counted = batches.telemetry.snapshot()["shapes"]
    assert found == allowed and set(counted) == {f"{rows} x {length}" for rows, length in allowed}


def test_of_other_streams(folder: Path, tmp_path: Path) -> None:
    """Packed rows, decoded in memory and on disk; a view; a corpus over a network; a node of a volunteer."""
    corpus, how = folder / "corpus", {"batch_size": B, "epochs": 2}
    with (
        PackedStream(corpus, L, **how, **ARRAYS, columns=["chunk_kind"]) as packed,
        PackedStream(corpus, L, **how, decoded=DecodedParams(tmp_path / "decoded")) as decoded,
        stream(folder / "view", **ARRAYS) as view,
        NodeStream(corpus, "anna", count=3, rounds=2, sequence_length=L, batch_size=B, **ARRAYS) as node,
    ):
        for each in (packed, decoded, view, node):
            found = list(each)
            assert len(found) > 3 and len(shapes(found)) == 1, each
    with range_server() as server:
        for path in corpus.rglob("*"):
            if path.is_file():
                server.files[path.relative_to(corpus).as_posix()] = path.read_bytes()
        with stream(server.url, remote=RemoteParams(cache=tmp_path / "cache"), **ARRAYS) as remote:
            assert len(shapes(remote)) == 1


def test_with_damage(folder: Path, tmp_path: Path) -> None:
    """Rows that cannot be read are filled, not left out."""
    corpus = shutil.copytree(folder / "corpus", tmp_path / "corpus")
    with (corpus / SHARD).open("r+b") as file:
        file.write(b"\xff\xff")
    with stream(corpus, on_damage="skip", **ARRAYS) as batches:
        assert len(shapes(batches)) == 1
        assert batches.not_delivered is not None and batches.not_delivered.damaged


def test_without_a_fixed_size_only_cu_seqlens_differ(folder: Path) -> None:
    """The comparison can fail: `cu_seqlens` of a stream without `cu_seqlens_size` have as many entries as there are."""
    with stream(folder / "corpus", cu_seqlens=True) as batches:
        found = list(batches)
    assert len(shapes(found)) > 1
    for batch in found:
        batch.pop("cu_seqlens"), batch.pop("max_seqlen")
    assert len(shapes(found)) == 1


def test_the_same_shape_after_a_resume(folder: Path) -> None:
    """Also by other ranks and other options of reading, from anywhere."""
    with stream(folder / "corpus", **ARRAYS) as batches:
        known = set()
        for batch in itertools.islice(batches, 12):
            known |= shapes([batch])
            with stream(folder / "corpus", **ARRAYS, rank=1, world_size=2, prefetch=1) as resumed:
                resumed.load_state_dict(batches.state_dict())
                known |= shapes(resumed)
    assert len(known) == 1


def test_every_option_is_covered() -> None:
    """A new option needs a run here, or a place where it is tested."""
    named = {name for options in ONE_SHAPE.values() for name in options}
    named |= {name for options, _ in SEVERAL.values() for name in options} | TESTED_ELSEWHERE
    assert set(FlatOptions.__annotations__) - named == set()
