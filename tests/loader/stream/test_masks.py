"""Masks against a per-token reference and against numpy, with random boundaries, and rejected arguments."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader import TokenStream
from refinery.loader.native import masks as kernel
from refinery.loader.stream import masks
from refinery.loader.stream.masks import IGNORE, PADDING, MaskParams, fill, fill_read
from tests.loader import masks_oracle
from tests.loader.numbered import build_numbered

EOS = 7
ALL = MaskParams(ignore_cross_document=True, ignore_eos=True, eos_id=EOS)


def batch_of(rows: list[list[int]], starts: list[list[int]], valid: list[int], params: MaskParams) -> dict[str, Any]:
    flat = np.array([s for row in starts for s in row], np.int64)
    counts = np.array([len(row) for row in starts])
    return fill(np.array(rows, np.int64), flat, counts, np.array(valid), params)


def reference(rows: list[list[int]], starts: list[list[int]], valid: list[int], params: MaskParams) -> dict[str, Any]:
    """Token by token, as the docstring says."""
    length = len(rows[0]) - 1
    want: dict[str, list[Any]] = {name: [] for name in ("labels", "loss_mask", "position_ids", "doc_ids")}
    cu = [0]
    for b, (row, begins, real) in enumerate(zip(rows, starts, valid, strict=True)):
        document, position = -1, 0
        for p in range(length):
            new = p == 0 or (p < real and p in begins) or p == real
            if new:
                document, position = document + 1, 0
                cu += [b * length + p] if b + p else []
            learned = p + 1 < real
            learned &= not (params.ignore_cross_document and p + 1 in begins)
            at_end = p + 2 in begins or p + 1 == length or p + 2 == real
            learned &= not (params.ignore_eos and row[p + 1] == params.eos_id and at_end)
            want["labels"].append(row[p + 1] if learned or not params.ignore_labels else IGNORE)
            want["loss_mask"].append(learned)
            want["position_ids"].append(position)
            want["doc_ids"].append(document if p < real else PADDING)
            position += 1
    cu.append(len(rows) * length)
    return want | {"cu_seqlens": cu, "max_seqlen": max(b - a for a, b in pairwise(cu))}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Rows cut from one stretch of documents: empty ones, ones longer than rows, borders at 0 and at S."""
    count, length = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    lengths = draw(st.lists(st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 40)), max_size=30))
    offsets = np.cumsum([0, *lengths]).tolist()
    total = count * (length + 4)
    tokens = draw(st.lists(st.integers(0, 6), min_size=total, max_size=total))
    for offset in offsets:
        if 0 < offset <= total and draw(st.booleans()):
            tokens[offset - 1] = EOS
    rows, starts, valid = [], [], []
    for _ in range(count):
        at = draw(st.integers(0, total - length - 1))
        rows.append(tokens[at : at + length + 1])
        real = draw(st.one_of(st.just(length + 1), st.integers(0, length + 1)))
        starts.append([offset - at for offset in offsets if 0 <= offset - at <= length])
        valid.append(real)
    return rows, starts, valid


@given(batches(), st.booleans(), st.booleans(), st.booleans())
def test_every_array_is_what_the_reference_says(
    batch: tuple[list[list[int]], list[list[int]], list[int]], cross: bool, eos: bool, ignore: bool
) -> None:
    params = MaskParams(ignore_labels=ignore, ignore_cross_document=cross, ignore_eos=eos, eos_id=EOS)
    rows, starts, valid = batch
    got, want = batch_of(rows, starts, valid, params), reference(rows, starts, valid, params)
    shape = (len(rows), len(rows[0]) - 1)
    assert got["input_ids"].tolist() == [row[:-1] for row in rows]
    for name, dtype in (("labels", "i8"), ("loss_mask", "?"), ("position_ids", "i4"), ("doc_ids", "i4")):
        assert got[name].shape == shape and got[name].dtype == dtype
        assert got[name].reshape(-1).tolist() == want[name], name
    assert got["cu_seqlens"].dtype == np.int32 and got["cu_seqlens"].tolist() == want["cu_seqlens"]
    assert got["max_seqlen"] == want["max_seqlen"]
    assert got.keys() == {"input_ids", *want}


OPTIONS = ("loss_mask", "position_ids", "doc_ids", "cu_seqlens", "ignore_labels")


@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.integers(1, 300),
    st.sampled_from(["i8", "u2", "i4", "u1"]),
    st.sets(st.sampled_from(OPTIONS)),
    st.booleans(),
    st.booleans(),
)
def test_every_array_is_what_numpy_says(
    seed: int, rows: int, length: int, dtype: str, asked: set[str], cross: bool, eos: bool
) -> None:
    learned = bool(asked & {"loss_mask", "ignore_labels"})
    params = MaskParams(
        **{name: name in asked for name in OPTIONS},
        ignore_cross_document=cross and learned,
        ignore_eos=eos and learned,
        eos_id=EOS,
    )
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, 9, (rows, length + 1)).astype(dtype)
    counts = draw.integers(0, draw.integers(1, 40), rows)
    starts = np.concatenate([np.sort(draw.integers(0, length + 1, count)) for count in counts])
    whole = np.full(rows, length + 1)
    valid = np.where(draw.random(rows) < draw.choice([0, 0.5]), draw.integers(0, length + 2, rows), whole)
    got, want = (module.fill(tokens, starts, counts, valid, params) for module in (masks, masks_oracle))
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert np.array_equal(got[name], array), name
        assert name == "max_seqlen" or (got[name].dtype, got[name].shape) == (array.dtype, array.shape)


@given(batches())
def test_labels_that_are_there_already_become_the_same(
    batch: tuple[list[list[int]], list[list[int]], list[int]],
) -> None:
    """A reader may write the labels with the tokens; in padding it writes none."""
    rows, starts, valid = batch
    tokens, counts = np.array(rows, np.int64), np.array([len(row) for row in starts])
    args = tokens, np.array([s for row in starts for s in row], np.int64), counts, np.array(valid), ALL
    labels = np.where(np.arange(1, tokens.shape[1]) < np.array(valid)[:, None], tokens[:, 1:], 12345)
    want, got = fill(*args), fill_read(*args, labels=labels)
    assert got["labels"] is labels and all(np.array_equal(got[name], array) for name, array in want.items())


def test_the_arrays_say_the_same_about_documents() -> None:
    got = batch_of([[1] * 7, [1] * 7], [[2, 2, 6], [0, 3]], [7, 4], ALL)
    assert got["doc_ids"].tolist() == [[0, 0, 1, 1, 1, 1], [0, 0, 0, 1, -1, -1]]
    assert got["position_ids"].tolist() == [[0, 1, 0, 1, 2, 3], [0, 1, 2, 0, 0, 1]]
    assert got["cu_seqlens"].tolist() == [0, 2, 6, 9, 10, 12] and got["max_seqlen"] == 4
    assert got["loss_mask"].tolist() == [[1, 0, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]]


def test_a_row_of_padding_teaches_nothing() -> None:
    got = batch_of([[EOS] * 5], [[]], [0], MaskParams())
    assert not got["loss_mask"].any() and set(got["labels"].ravel().tolist()) == {IGNORE}
    assert got["cu_seqlens"].tolist() == [0, 4] and set(got["doc_ids"].ravel().tolist()) == {PADDING}


@pytest.mark.parametrize(
    ("row", "starts", "valid", "learned"),
    [
        ([1, EOS, 1], [], 2, [0, 0]),  # the domain's last token
        ([1, EOS, 1], [], 3, [1, 1]),  # no document ends there
        ([1, EOS, 1], [2], 3, [0, 0]),
        ([EOS, 1, 1], [1], 3, [0, 1]),
        ([1, 1, EOS], [], 3, [1, 0]),
        ([EOS, EOS, EOS], [1, 2], 3, [0, 0]),
    ],
)
def test_an_eos_at_an_end(row: list[int], starts: list[int], valid: int, learned: list[int]) -> None:
    assert batch_of([row], [starts], [valid], ALL)["loss_mask"].tolist() == [learned]


def test_only_what_is_asked_for_is_there() -> None:
    plain = MaskParams(loss_mask=False, position_ids=False, doc_ids=False, cu_seqlens=False, ignore_labels=False)
    tokens = np.arange(10, dtype=np.uint16).reshape(2, 5)
    got = fill(tokens, np.empty(0, np.int64), np.zeros(2, np.int64), np.array([5, 5]), plain)
    assert got.keys() == {"input_ids", "labels"}
    assert np.shares_memory(got["labels"], tokens) and got["labels"].tolist() == [[1, 2, 3, 4], [6, 7, 8, 9]]


def test_a_kept_batch_does_not_change() -> None:
    tokens = np.arange(10).reshape(2, 5)
    args = np.array([2]), np.array([1, 0]), np.array([5, 5]), ALL
    kept = fill(tokens, *args)
    before = {name: np.copy(kept[name]) for name in kept}
    again = fill(tokens, np.array([1]), *args[1:])
    assert all(np.array_equal(kept[name], before[name]) for name in kept)
    assert not any(np.shares_memory(kept[name], again[name]) for name in kept.keys() - {"input_ids", "max_seqlen"})
    assert tokens.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]  # labels are ignored in a copy


@pytest.mark.parametrize(
    ("tokens", "counts", "valid"),
    [((2, 1), 2, 2), ((2, 5), 3, 2), ((2, 5), 2, 1), ((10,), 2, 2), ((2, 5, 1), 2, 2)],
)
def test_shapes_that_do_not_fit(tokens: tuple[int, ...], counts: int, valid: int) -> None:
    with pytest.raises(ValueError, match="tokens, counts, valid: shapes"):
        fill(np.zeros(tokens, np.int64), np.empty(0, np.int64), np.zeros(counts, int), np.full(valid, 5), ALL)


@pytest.mark.parametrize(
    ("starts", "counts", "valid"),
    [
        ([5], [1, 0], [5, 5]),  # S is 4: a start at 5 is in the next row
        ([-1], [1, 0], [5, 5]),
        ([2**62], [0, 1], [5, 5]),
        ([3, 2], [2, 0], [5, 5]),
        ([3, 2], [1, 0], [5, 5]),  # more starts than are counted
        ([3], [1, 1], [5, 5]),
        ([3], [2, -1], [5, 5]),
        ([3], [-1, 2], [5, 5]),  # a start before the first
        ([3], [2**62, -(2**62)], [5, 5]),
        ([], [0, 0], [6, 5]),
        ([], [0, 0], [5, -1]),
        ([], [0, 0], [5, 2**62]),
    ],
)
def test_documents_outside_of_their_rows(starts: list[int], counts: list[int], valid: list[int]) -> None:
    tokens = np.zeros((2, 5), np.int64)
    with pytest.raises(ValueError, match="starts, counts, valid: "):
        fill(tokens, np.array(starts, np.int64), np.array(counts), np.array(valid), ALL)


def arguments(**changed: Any) -> list[Any]:
    """Of the kernel's fill, for two rows of four and three starts."""
    given_ = {
        "tokens": np.arange(10),
        "starts": np.array([2, 0, 3]),
        "counts": np.array([1, 2]),
        "valid": np.array([5, 4]),
        "options": 3,
        "eos": EOS,
        "labels": np.zeros(8, np.int64),
        "loss": np.zeros(8, np.bool_),
        "positions": np.zeros(8, np.int32),
        "documents": np.zeros(8, np.int32),
        "bounds": np.zeros(8, np.int32),
    }
    return list((given_ | changed).values())


@pytest.mark.parametrize(
    ("name", "size"), [("tokens", 9), ("valid", 1), ("labels", 7), ("loss", 9), ("positions", 7), ("documents", 9)]
)
def test_the_kernel_takes_no_other_sizes(name: str, size: int) -> None:
    dtype = {"tokens": "i8", "valid": "i8", "labels": "i8", "loss": "?"}.get(name, "i4")
    with pytest.raises(ValueError, match="are needed"):
        kernel.fill(*arguments(**{name: np.zeros(size, dtype)}))


@pytest.mark.parametrize(
    "changed",
    [
        {"bounds": np.zeros(7, np.int32)},
        {"counts": np.zeros(0, np.int64), "valid": np.zeros(0, np.int64), "tokens": np.zeros(0, np.int64)},
        {"tokens": np.zeros(10, np.int32)},
        {"positions": np.zeros(33, np.uint8)[1:].view(np.int32)},  # not aligned
    ],
)
def test_the_kernel_takes_no_other_arrays(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"(is|are) needed"):
        kernel.fill(*arguments(**changed))


def test_the_kernel_writes_to_no_input() -> None:
    for name in ("labels", "loss", "positions", "documents", "bounds"):
        index = ["labels", "loss", "positions", "documents", "bounds"].index(name) + 6
        given_ = arguments()
        given_[index].flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            kernel.fill(*given_)
    with pytest.raises(TypeError):
        kernel.fill(*arguments(tokens=None))


def test_the_kernel_writes_inside_its_arrays_alone() -> None:
    sizes = {
        "labels": ("i8", 8),
        "loss": ("u1", 8),
        "positions": ("i4", 8),
        "documents": ("i4", 8),
        "bounds": ("i4", 8),
    }
    around = {name: np.full(24, 77, dtype) for name, (dtype, _) in sizes.items()}
    runs, longest = kernel.fill(*arguments(**{name: array[8:16] for name, array in around.items()}))
    assert (runs, longest) == (4, 3)
    for name, array in around.items():
        assert (array[:8] == 77).all() and (array[16:] == 77).all(), name
    assert around["bounds"][8:].tolist()[:5] == [0, 2, 4, 7, 8]


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"ignore_eos": True}, "ignore_eos: True given"),
        ({"eos_id": -1}, "eos_id: -1 given"),
        ({"ignore_cross_document": True, "loss_mask": False, "ignore_labels": False}, "without loss_mask or"),
    ],
)
def test_invalid_parameters(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MaskParams(**given_)


def test_views_of_the_same_tokens_are_read_only_and_say_why() -> None:
    tokens = np.arange(10).reshape(2, 5)
    none = np.empty(0, np.int64), np.zeros(2, np.int64), np.full(2, 5)
    batch = fill(tokens, *none, MaskParams(*[False] * 5))
    for name in ("input_ids", "labels"):
        with pytest.raises(ValueError, match=r"input_ids, labels: read-only in this batch.* write to a copy"):
            batch[name][batch[name] == 3] = -100
        with pytest.raises(ValueError, match="read-only"):
            batch[name] += 1
        assert {batch[name].sum(): type(batch[name] == 3)} == {np.sum(batch[name].copy()): np.ndarray}
    own = batch["labels"].copy()
    assert type(own) is np.ndarray and own.flags.c_contiguous
    own[own == 3] = -100
    assert batch["input_ids"].tolist() == [[0, 1, 2, 3], [5, 6, 7, 8]] and own[0].tolist() == [1, 2, -100, 4]
    masked = fill(tokens.copy(), *none, MaskParams(False, False, False, False))
    masked["labels"][...] = -100  # an array of its own
    assert masked["input_ids"].tolist() == batch["input_ids"].tolist()


@pytest.mark.parametrize("packing", [None, "best_fit"])
def test_labels_without_a_copy(tmp_path: Path, packing: Any) -> None:
    """mask_labels=False: labels are the next tokens, in the memory of the inputs, and loss_mask is as it was."""
    corpus = build_numbered(tmp_path, {"a": [[5, 30, 7, 1, 90]]})
    asked: dict[str, Any] = {"loss_mask": True, "ignore_cross_document": True, "packing": packing, "epochs": 1}
    with TokenStream(corpus, 16, 3, **asked) as masked, TokenStream(corpus, 16, 3, mask_labels=False, **asked) as plain:
        for one, other in zip(masked, plain, strict=True):
            assert (one["input_ids"] == other["input_ids"]).all() and (one["loss_mask"] == other["loss_mask"]).all()
            assert (other["labels"] == np.where(one["loss_mask"], one["labels"], other["labels"])).all()
            assert (other["labels"][:, :-1] == other["input_ids"][:, 1:]).all()
            assert np.shares_memory(other["labels"], other["input_ids"])
    for wrong in ({"loss_mask": False}, {"labels": "unshifted"}):
        with pytest.raises(ValueError, match="mask_labels: False given without"):
            TokenStream(corpus, 16, 3, mask_labels=False, **(asked | wrong))
