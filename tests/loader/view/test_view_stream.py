"""A view streams as the corpus would that has its documents written out: every array of every batch, in order.

What a view delivers is read from its files by tests/mix_factory.py, which shares nothing with the loader.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import BestFitParams, FillInMiddleParams, OrderParams, PackedStream, RemoteParams, TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.stream.state import StateError
from refinery.pipelines.corpus.mix.make_view import make_view
from refinery.pipelines.corpus.mix.recipe import load_mix
from refinery.pipelines.progress.work import Work
from tests.loader.range_server import RangeServer, range_server
from tests.loader.streams import ORDER, S
from tests.mix_factory import documents_of, mix_corpus, write_out, write_recipe
from tests.plain_manifest import manifest_of
from tests.sampling import sampled
from tests.shared import shared

CHOSEN: list[dict[str, Any]] = [
    {
        "name": "good", "parts": ["a/web", "b"], "where": "quality > 0.2 and language == 'en'",
        "upsample": {"column": "copies", "bins": [{"below": 2, "times": 1}, {"below": 10, "times": 2.5}, {"times": 4}]},
    },
    {"name": "rest", "parts": ["a"], "times": 0.3},
    {"name": "all", "parts": ["b"], "times": 2},
]  # fmt: skip
MASKS: dict[str, Any] = {"loss_mask": True, "position_ids": True, "doc_ids": True, "cu_seqlens": True}
WEIGHTS = {"good": 2, "all": 1}


def fill(folder: Path) -> None:
    web = {("train", "web"): [200, 150, 0], ("train", "code"): [60], ("validation", "web"): [9]}
    a, b = mix_corpus(folder / "a", 1, web), mix_corpus(folder / "b", 2, {("train", "web"): [90]})
    mixing = {"weights": WEIGHTS, "repeats": 2}
    recipes = [
        write_recipe(folder / "chosen.yaml", {"a": a, "b": b}, CHOSEN),
        write_recipe(folder / "mixed.yaml", {"a": a, "b": b}, CHOSEN, mixing=mixing),
        write_recipe(folder / "whole.yaml", {"b": b}, [{"name": "web", "parts": ["b"]}]),
    ]
    for recipe in recipes:
        make_view(load_mix(str(recipe)), str(folder / recipe.stem), Work())
    for split in ("train", "validation"):
        write_out(folder / "chosen", split, folder / f"written-{split}")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "views", fill)


def stream(prefix: Path | str, **options: Any) -> TokenStream:
    defaults: dict[str, Any] = {"sequence_length": S, "batch_size": 4, "seed": 5, "order": ORDER, "prefetch": 0}
    return TokenStream(prefix, **(defaults | {"epochs": 2} | options))


def same(found: Any, expected: Any) -> int:
    """That two streams deliver the same; how many batches."""
    count = 0
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert np.array_equal(one[name], other[name]), (count, name)
        count += 1
    return count


@pytest.mark.parametrize(
    "options",
    sampled(
        "options of views",
        [
            {},
            MASKS,
            {"ignore_cross_document": True, "labels": "unshifted"},
            {**MASKS, "ignore_eos": True, "domain_ids": True, "sample_ids": True, "prefetch": 2},
            {"fill_in_middle": FillInMiddleParams(258, 259, 260, vocab_size=300, min_tokens=2), "doc_ids": True},
            {"sequence_length": 700, "batch_size": 2, "doc_ids": True},
            {
                "sequence_length": 5,
                "rank": 1,
                "world_size": 3,
                "position_ids": True,
                "order": OrderParams(block=1, lanes=2),
            },
            {"workers": 2, "worker": 1, "doc_ids": True},
            {"weights": WEIGHTS, "doc_ids": True},
            {"packing": BestFitParams(block=700), **MASKS},
            {"packing": "best_fit", "weights": WEIGHTS, "sample_ids": True, "domain_ids": True},
        ],
        4,
    ),
)
def test_a_view_is_the_corpus_that_it_describes(folder: Path, options: dict[str, Any]) -> None:
    with stream(folder / "chosen", **options) as view, stream(folder / "written-train", **options) as corpus:
        assert same(view, corpus) > 3
        assert view.tokens_per_domain == corpus.tokens_per_domain


def test_validation_has_what_the_rules_take_once(folder: Path) -> None:
    options = {"split": "validation", "doc_ids": True}
    with stream(folder / "chosen", **options) as view, stream(folder / "written-validation", doc_ids=True) as corpus:
        assert same(view, corpus)
    names = [name for _, name, _ in documents_of(folder / "chosen", "validation")]
    assert len(names) > len(set(names))  # two domains that take a document deliver it twice, but ...
    assert len({(d, name) for d, name, _ in documents_of(folder / "chosen", "validation")}) == len(names)


def test_a_view_of_everything_is_its_corpus(folder: Path) -> None:
    assert not (folder / "whole/selection.bin").exists()
    with stream(folder / "whole", **MASKS) as view, stream(folder / "b", **MASKS) as corpus:
        assert same(view, corpus)
        assert view.corpus != corpus.corpus
        assert view.tokens_per_shard == {f"b/{path}": n for path, n in corpus.tokens_per_shard.items()}


def test_weights_of_a_view_are_those_of_its_stream(folder: Path) -> None:
    with stream(folder / "mixed", epochs=None) as own, stream(folder / "chosen", weights=WEIGHTS, epochs=2) as given:
        assert same(own, given)
        assert own.mix == given.mix and own.mix["good"]["epochs"] <= 2
    with stream(folder / "mixed", epochs=1) as fewer, stream(folder / "chosen", weights=WEIGHTS, epochs=1) as given:
        assert same(fewer, given)
    with stream(folder / "mixed", split="validation", epochs=1) as held_out:
        assert not held_out.mix and len(list(held_out)) == held_out.steps


@pytest.mark.parametrize("at", [0, 1, 7, 40])
def test_resume_with_other_ranks_and_rows(folder: Path, at: int) -> None:
    with stream(folder / "chosen", doc_ids=True) as whole:
        for _ in range(at):
            next(whole)
        state = whole.state_dict()
        rest = [row for batch in whole for row in batch["input_ids"].tolist()]
    found: list[list[Any]] = []
    for rank in range(2):
        with stream(folder / "chosen", doc_ids=True, rank=rank, world_size=2, batch_size=2) as part:
            part.load_state_dict(state)
            found.append([batch["input_ids"].tolist() for batch in part])
    again = [row for pair in zip(*found, strict=True) for rows in pair for row in rows]
    assert sorted(again) == sorted(rest)
    with stream(folder / "mixed") as other, pytest.raises(StateError, match="corpus"):
        other.load_state_dict(state)


def test_rows_are_located_in_their_corpora(folder: Path) -> None:
    known = {name: tokens for _, name, tokens in documents_of(folder / "chosen", "train")}
    with stream(folder / "chosen", sample_ids=True, epochs=1) as view:
        batch = next(view)
        for row, sample in zip(batch["input_ids"].tolist(), batch["sample_ids"].tolist(), strict=True):
            for origin in view.locate(sample):
                tokens = known[f"{origin.shard}/{origin.document}"]
                assert row[origin.start : origin.stop] == tokens[origin.first :][: origin.stop - origin.start]
                assert origin.url.startswith("https://host") and origin.id


def test_from_a_server(folder: Path, tmp_path: Path) -> None:
    """Views, selections and corpora over HTTPS; relative locations begin at the view's own address."""
    with range_server() as server:
        _serve(server, folder)
        params = RemoteParams(cache=tmp_path / "cache", cache_bytes=256 << 20)
        for split in ("train", "validation"):
            options = {"doc_ids": True, "epochs": 1, "split": split}
            with (
                stream(f"{server.url}/chosen", remote=params, **options) as far,
                stream(folder / "chosen", **options) as near,
            ):
                assert same(far, near)
                assert far.telemetry.summary()


def _serve(server: RangeServer, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            server.files[path.relative_to(folder).as_posix()] = path.read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [({"shards": ["x"]}, "one of its corpora"), ({"weights": {"web": 1}}, "'good', 'rest', 'all'")],
)
def test_what_views_refuse(folder: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stream(folder / "chosen", **options)
    with pytest.raises(ValueError, match="PackedStream its corpora"):
        PackedStream(folder / "chosen", S)


def test_another_corpus_under_the_name(tmp_path: Path) -> None:
    a = mix_corpus(tmp_path / "a", 1, {("train", "web"): [5]})
    recipe = write_recipe(tmp_path / "r.yaml", {"a": a}, [{"name": "web", "parts": ["a"]}])
    make_view(load_mix(str(recipe)), str(tmp_path / "v"), Work())
    assert manifest_of(tmp_path / "v")["corpora"][0]["location"] == "../a"
    a.rename(tmp_path / "b")
    with pytest.raises(FormatError, match="put it back"):
        stream(tmp_path / "v")
    mix_corpus(tmp_path / "a", 2, {("train", "web"): [5]})
    with pytest.raises(FormatError, match="this is another corpus or version"):
        stream(tmp_path / "v")
