"""A training run on the old version goes on with the new one: every token that is still there at its step and place."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader import MixParams, MixStage, TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.stream.state import StateError
from tests.corpus_factory import edit_manifest
from tests.fake_gcs import fake_gcs
from tests.pipelines.corpus.remove.corpora import FIRST, SECOND

S, IGNORE = 32, -100


def stream(prefix: object, **options: Any) -> TokenStream:
    defaults: dict[str, Any] = {"sequence_length": S, "batch_size": 2, "seed": 3, "epochs": 2, "prefetch": 0}
    return TokenStream(str(prefix), **(defaults | options))


def gone(two: TokenStream) -> int:
    found = two.not_delivered
    assert found is not None
    return found.tokens


def pairs(old: Iterator[Any], new: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(old, new, strict=True)


CASES: dict[str, dict[str, Any]] = {
    "one sequence": {},
    "mixed": {"weights": {"web": 2, "books": 1}},
    "all arrays": {"doc_ids": True, "loss_mask": True, "position_ids": True, "cu_seqlens": True},
    "unshifted": {"labels": "unshifted", "loss_mask": True},
    "threads": {"prefetch": 2},
}


@pytest.mark.parametrize("later", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_every_other_token_keeps_its_step_and_place(name: str, later: int, versions: list[Path]) -> None:
    options = CASES[name]
    before = 5
    with stream(versions[0], **options) as old, stream(versions[later], **options) as new:
        for _ in range(before):
            next(old)
        new.load_state_dict(old.state_dict())
        assert new.state_dict() == old.state_dict()
        hidden = filled = 0
        for one, two in pairs(old, new):
            assert one.keys() == two.keys()
            for key in one.keys() - {"input_ids", "labels", "loss_mask"}:
                assert np.array_equal(one[key], two[key]), key
            other = one["labels"] != two["labels"]
            assert (two["labels"][other] == IGNORE).all()
            assert ((one["input_ids"] == two["input_ids"]) | (two["input_ids"] == fill(new))).all()
            if "loss_mask" in one:
                assert np.array_equal(two["loss_mask"], one["loss_mask"] & ~other)
            hidden += int(other.sum())
            filled += int((one["input_ids"] != two["input_ids"]).sum())
        assert new.state_dict() == old.state_dict()
        assert hidden and filled
        if name == "one sequence":  # an epoch and most of another; a document's EOS is what it is filled with
            assert gone(new) < hidden <= 2 * gone(new)


def fill(of: TokenStream) -> int:
    return of.manifest.tokenizer.eos_id or 0


def test_exactly_what_is_listed_is_not_delivered(versions: list[Path]) -> None:
    """From the first step on, an epoch: the hidden labels are the removed documents' tokens."""
    with stream(versions[0], epochs=1) as old, stream(versions[2], epochs=1, sample_ids=True) as new:
        new.load_state_dict(old.state_dict())
        told = new.not_delivered
        assert told is not None
        rows = [row for row in told.rows() if row["split"] == "train"]
        removed = [row for row in rows if row["kind"] == "removed"]
        assert {row["url"] for row in removed} <= {*FIRST, *SECOND}
        assert told.documents == len(removed) > 2
        came = {row["url"] for row in rows if row["kind"] == "added"}
        assert told.added == len(came)
        hidden = 0
        for one, two in pairs(old, new):
            hidden += int((one["labels"] != two["labels"]).sum())
            for row, sample in enumerate(two["sample_ids"].tolist()):
                for origin in new.locate(sample) if sample >= 0 else ():
                    inside = slice(origin.start, origin.stop)
                    same = one["input_ids"][row][inside] == two["input_ids"][row][inside]
                    assert same.all() if origin.url else (two["input_ids"][row][inside] == fill(new)).all()
        assert hidden >= told.tokens - 1  # the very first token of all is nobody's label
        assert new.state_dict()["epoch"] == 1  # and the counters of the epoch agreed


def test_a_fresh_stream_has_the_new_geometry_and_a_state_of_its_own(versions: list[Path]) -> None:
    with stream(versions[1], epochs=1) as new:
        assert new.not_delivered is None
        first = [batch["input_ids"].copy() for batch in new]
    with stream(versions[0], epochs=1) as old, stream(versions[1], epochs=1) as new:
        state = new.state_dict()
        new.load_state_dict(old.state_dict())
        assert new.not_delivered is not None and new.steps_per_epoch == old.steps_per_epoch
        new.load_state_dict(state)
        assert new.not_delivered is None
        assert all(np.array_equal(a, b["input_ids"]) for a, b in zip(first, new, strict=True))
        with pytest.raises(StateError, match="corpus"):
            old.load_state_dict(state)  # the old version does not know the new one
        with pytest.raises(StateError, match="seed"):
            new.load_state_dict({**old.state_dict(), "seed": 99})
        assert new.not_delivered is None  # unchanged


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_refused_state_of_the_old_version_changes_nothing(prefetch: int, versions: list[Path]) -> None:
    """Also in a stream that has begun, which is turned to the old version before the rest of the state is read."""
    with stream(versions[0]) as old:
        next(old)
        state = old.state_dict()
    with stream(versions[1]) as whole, stream(versions[1], prefetch=prefetch) as new:
        expected = [batch["input_ids"].tolist() for batch in whole]
        found = [next(new)["input_ids"].tolist()]
        for change in ({"seed": 4}, {"position": 10**9}):
            with pytest.raises(StateError):
                new.load_state_dict({**state, **change})
            found.append(next(new)["input_ids"].tolist())
        assert found + [batch["input_ids"].tolist() for batch in new] == expected


def test_from_a_bucket(versions: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("bucket") as gcs:
        gcs.put_folder("bucket", "three/", versions[2])
        gcs.use(monkeypatch)
        with stream(versions[0]) as old, stream(versions[2]) as near, stream("gs://bucket/three") as far:
            next(old)
            state = old.state_dict()
            near.load_state_dict(state)
            far.load_state_dict(state)
            for one, two in zip(near, far, strict=True):
                assert np.array_equal(one["labels"], two["labels"])
                assert np.array_equal(one["input_ids"], two["input_ids"])


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("domain", "large", "has a page of"),
        ("row", 1 << 40, "places that a shard of"),
        ("token_offset", 1 << 40, "places that a shard of"),
        ("token_count", 1 << 40, "a place that no document can have"),
        ("row", -7, "a place that no document can have"),
        ("row", "seven", "its columns are not those of the format: \\['row: string, no null'\\] found"),
    ],
)
def test_lists_that_somebody_forged(column: str, value: Any, said: str, versions: list[Path], tmp_path: Path) -> None:
    """A clear error before they fill memory, and a stream that still stands where it stood."""
    prefix = shutil.copytree(versions[1], tmp_path / "forged", ignore=shutil.ignore_patterns("work"))
    listing = prefix / "takedowns" / "00001" / "removed.parquet"
    table = pq.read_table(listing)
    place = table.column_names.index(column)
    values = table[column].to_pylist()
    if value == "large":  # made here: a parameter would stay in every test process
        value = "d" * (65 << 20)
    values[table["split"].to_pylist().index("train")] = value
    forged = pa.array([str(each) for each in values] if isinstance(value, str) else values)
    listing.unlink()
    pq.write_table(table.set_column(place, table.schema.field(column).with_type(forged.type), forged), listing)
    edit_manifest(prefix)
    with stream(versions[0]) as old, stream(prefix) as new:
        state = new.state_dict()
        with pytest.raises(FormatError, match=said):
            new.load_state_dict(old.state_dict())
        assert new.state_dict() == state and next(new)


def tokens_of(of: TokenStream, batch: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(id of the document, number of the token in it) of a batch's inputs."""
    for sample in batch["sample_ids"].tolist():
        for origin in of.locate(sample) if sample >= 0 else ():
            yield from ((origin.id, origin.first + i) for i in range(origin.stop - origin.start))


def test_an_epoch_is_finished_by_other_weights(versions: list[Path]) -> None:
    """`continue_from` a stream of the old version, opened there or in the new one: what it had used and is still there
    does not come again; everything else of the new version comes once, with what came back."""
    shape = {"sample_ids": True, "sequence_length": 256}
    with stream(versions[0], **shape) as old, stream(versions[2], **shape) as earlier:
        used = {token for _ in range(5) for token in tokens_of(old, next(old))}
        earlier.load_state_dict(old.state_dict())
        with stream(versions[2], epochs=1, **shape) as whole:
            every = [token for batch in whole for token in tokens_of(whole, batch)]
        names = dict.fromkeys(whole.domain_names, 1)
        mix = MixParams([MixStage(names)], repeats=1, on_limit="renormalise")
        options = {"weights": mix, "epochs": None, "sample_ids": True, "sequence_length": 128}
        with stream(versions[2], **options) as new, stream(versions[2], **options) as again:
            again.load_state_dict(new.continue_from(earlier))
            found = [token for batch in again for token in tokens_of(again, batch)]
            assert sorted(found) == sorted(set(every) - used) and len(set(every)) == len(every)
            assert used & set(every) and used - set(every)  # some were taken out
            state = new.continue_from(old)
            assert state["usage"] == again.continue_from(earlier)["usage"] and new.steps_left == again.steps_left
        with pytest.raises(StateError, match="other bytes here"), stream(versions[2]) as later:
            next(later)
            old.continue_from(later)
