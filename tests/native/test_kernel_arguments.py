"""What kernels refuse: every array of the wrong type, form, size, place or order, and every number out of bounds.

A wrong argument raises ValueError with a sentence that names it; an object that is no array or number, TypeError.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from refinery.loader.native import documents, masks, pages, permutation, rows, runs
from refinery.transforms.native import (
    bpe,
    clusters,
    heuristics,
    htmlblocks,
    jaccard,
    lines,
    markup,
    minhash,
    pieces,
    substrings,
    trees,
)
from tests.native.kernel_calls import CLASSES, GOOD, WRITTEN, Arguments, call, i8, name_of, u4, u8
from tests.sampling import sampled


def unaligned(array: Any) -> Any:
    moved = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


# What is wrong -> the same array in a form that a kernel must not read, the fault that it must name, and the least
# bytes of an item and items for which the two differ.
FORMS: dict[str, tuple[Callable[[Any], Any], str, int, int]] = {
    "float": (lambda array: array.astype(np.float64), "type", 1, 0),
    "integer": (lambda array: array.astype(np.uint64 if array.dtype == np.int64 else np.int16), "type", 1, 0),
    "complex": (lambda array: array.astype(np.complex64), "type", 1, 0),
    "byte-order": (lambda array: array.astype(array.dtype.newbyteorder(">")), "type", 2, 0),
    "unaligned": (unaligned, "aligned", 2, 0),
    "stride": (lambda array: np.repeat(array, 2, axis=0)[::2], "gaps", 1, 2),
    "backwards": (lambda array: array[::-1], "gaps", 1, 2),
}


def arrays() -> Iterator[Any]:
    """The cases by name alone: some arrays have a million items, and there are hundreds of cases."""
    for function, good in GOOD.items():
        for name, value in good().items():
            if isinstance(value, np.ndarray):
                for form, (_, _, item, items) in FORMS.items():
                    raw = function is bpe.Encoder and form == "unaligned"  # copied, so it may be anywhere
                    if value.itemsize >= item and value.size >= items and not raw:
                        yield pytest.param(function, name, form, id=f"{name_of(function)}-{name}-{form}")


def test_the_runs_of_the_table() -> None:
    """What GOOD has for runs.cut: tokens 1, 2 and 4 of shard 0, then both of shard 4."""
    found = np.frombuffer(call(runs.cut, {}), np.int64).reshape(-1, 5).tolist()
    assert found[:3] == [[0, 0, 1, 2, 0], [0, 0, 4, 1, 2], [0, 4, 0, 2, 3]]
    assert found[3:] == [[1, 0, 2, 1, 0], [1, 0, 4, 1, 1], [1, 4, 0, 2, 2]]


@pytest.mark.parametrize("function", list(GOOD), ids=name_of)
def test_good_arguments_are_taken(function: Callable[..., Any]) -> None:
    call(function, {})


@pytest.mark.parametrize(("function", "name", "form"), sampled("array forms", arrays(), 200, lambda c: c.values[::2]))
def test_arrays_in_another_form_are_refused(function: Callable[..., Any], name: str, form: str) -> None:
    change, fault, _, _ = FORMS[form]
    wrong = change(GOOD[function]()[name])
    with pytest.raises(ValueError, match=rf"^{name}: .*{fault}.* needed$"):
        call(function, {name: wrong})


@pytest.mark.parametrize(
    ("function", "name"),
    [(function, name) for function, good in GOOD.items() for name in good() if name in WRITTEN],
    ids=lambda value: value if isinstance(value, str) else name_of(value),
)
def test_read_only_outputs_are_refused(function: Callable[..., Any], name: str) -> None:
    if name == "documents" and function is documents.find:
        return
    output = GOOD[function]()[name]
    output.flags.writeable = False
    with pytest.raises(ValueError, match=rf"^{name}: an array that is read-only given"):
        call(function, {name: output})


OVERLAPPING = [
    (jaccard.cluster, "values", "shared"),
    (jaccard.cluster, "representative", "shared"),
    (clusters.assign, "signatures", "matches"),
    (clusters.assign, "representative", "matches"),
    (minhash.signatures, "a", "out"),
    (masks.fill, "tokens", "labels"),
    (masks.fill, "positions", "documents"),
    (rows.gather, "out", "labels"),
    (permutation.permute, "x", "out"),
    (permutation.permute, "keys", "out"),
]


@pytest.mark.parametrize(
    ("function", "one", "other"), OVERLAPPING, ids=lambda v: v if isinstance(v, str) else name_of(v)
)
def test_outputs_that_share_memory_are_refused(function: Callable[..., Any], one: str, other: str) -> None:
    """What is written while it is read may lead out of the arrays: offsets that a result overwrites, say."""
    good = GOOD[function]()
    shared = np.zeros(max(good[one].nbytes, good[other].nbytes), np.uint8)
    changed = {
        name: shared[: good[name].nbytes].view(good[name].dtype).reshape(good[name].shape) for name in (one, other)
    }
    with pytest.raises(ValueError, match=f"^{one} and {other}: arrays that share memory"):
        call(function, changed)


def test_offsets_may_not_be_written_over() -> None:
    """The results of jaccard.cluster, laid over its offsets and starts by a view of another type."""
    offsets = i8(0, 1, 2, 3)
    with pytest.raises(ValueError, match=r"^offsets and shared: arrays that share memory"):
        jaccard.cluster(u4(3), offsets, i8(0, 3), 0.5, u4(3), offsets.view(np.uint32)[:3])


HUGE = 2**64
WRONG_VALUES: list[tuple[Callable[..., Any], Arguments, str]] = [
    (bpe.Encoder, {"pattern": "gpt3"}, "pattern: gpt3 given"),
    (bpe.Encoder, {"byte_ids": u4(255)}, "byte_ids: 256 uint32"),
    (bpe.Encoder, {"byte_ids": bytes(1023)}, "byte_ids: "),
    (bpe.Encoder, {"merges": u4(5)}, "merges: rows of 3"),
    (bpe.Encoder, {"classes": bytes(0x10FFFF)}, "classes: one byte"),
    (bpe.Encoder, {"whole": {b"ab": -1}}, "whole: "),
    (bpe.Encoder, {"whole": {b"ab": 2**32}}, "whole: "),
    (bpe.Encoder, {"whole": {b"ab": HUGE}}, "whole: "),
    (bpe.Encoder, {"whole": {"ab": 1}}, "whole: "),
    (pieces.Encoder, {"pieces": b" aa"}, "pieces and ends: "),
    (pieces.Encoder, {"pieces": b"aa b"}, "pieces and ends: "),
    (pieces.Encoder, {"pieces": b" a a"}, "pieces and ends: "),
    (pieces.Encoder, {"pieces": b" a\xff\xff"}, "'utf-8' codec"),
    (pieces.Encoder, {"pieces": b" a\x80b"}, "pieces and ends: "),
    (pieces.Encoder, {"pieces": b"", "ends": u4(0)}, "pieces and ends: "),
    (pieces.Encoder, {"ends": np.array([4, 2], np.uint32)}, "pieces and ends: "),
    (pieces.Encoder, {"ends": np.array([0, 4], np.uint32)}, "pieces and ends: "),
    (pieces.Encoder, {"ends": np.array([2, 2**32 - 1], np.uint32)}, "pieces and ends: "),
    (pieces.Encoder, {"pieces": b" " * 600, "ends": np.array([1, 600], np.uint32)}, "pieces and ends: "),
    (pieces.Encoder, {"ids": u4(3)}, "ids: one for each"),
    (pieces.Encoder, {"ids": np.array([1, 1 << 24], np.uint32)}, "ids: below 16777216"),
    (pieces.Encoder, {"values": bytes(12)}, "values: one for each"),
    (pieces.Encoder, {"values": b"\xff" * 8}, "values: a score"),
    (pieces.Encoder, {"whole": b"\0"}, "whole: one for each"),
    (pieces.Encoder, {"byte_ids": bytes(1020)}, "byte_ids: 256 uint32"),
    (pieces.Encoder, {"byte_ids": b"\xff" * 1024}, "ids: below 16777216"),
    (pieces.Encoder, {"unknown": -1}, "unknown: -1 given, 0 to 16777215 is allowed"),
    (pieces.Encoder, {"unknown": HUGE}, "unknown: a number above 64 bits"),
    (pieces.Encoder, {"unknown_score": float("nan")}, "unknown_score: at most"),
    (pieces.joins, {"tokens": b"aabbc"}, "tokens and ends: "),
    (pieces.joins, {"tokens": b"abba"}, "tokens and ends: "),
    (pieces.joins, {"ends": np.array([1, 1, 4], np.uint32)}, "tokens and ends: "),
    (pieces.joins, {"ranks": u4(3)}, "ranks: the numbers"),
    (pieces.joins, {"ranks": np.array([1, 2, 3], np.uint32)}, "ranks: the numbers"),
    (pieces.joins, {"ranks": u4(2)}, "ranks: the numbers"),
    (pieces.Encoder, {"merges": bytes(16)}, "merges: rows of 3"),
    (pieces.Encoder, {"merges": b"\xff" * 12}, "ids: below 16777216"),
    (pieces.Encoder, {"charsmap": bytes(3000)}, "charsmap: a trie and"),
    (pieces.Encoder, {"charsmap": b"\0\4\0\0" + bytes(1024) + b"\0"}, "charsmap: its trie leads"),
    (heuristics.measure, {"max_ngram": 11}, "max_ngram: 11 given, 0 to 10 is allowed"),
    (heuristics.measure, {"max_ngram": -1}, "max_ngram"),
    (heuristics.measure, {"short_line_chars": -1}, "short_line_chars"),
    (heuristics.measure, {"min_line_words": -HUGE}, "min_line_words: a number below 64 bits"),
    (heuristics.measure, {"max_word_chars": HUGE}, "max_word_chars: a number above 64 bits"),
    (heuristics.measure, {"flags": 512}, "flags: 512 given, 0 to 511 is allowed"),
    (htmlblocks.parse, {"most": 0}, "most: 0 given"),
    (htmlblocks.parse, {"most": HUGE}, "most"),
    (htmlblocks.features, {"blocks": bytes(7)}, "blocks"),
    (htmlblocks.features, {"blocks": bytes(128)[:-4]}, "blocks, groups, elements"),
    (htmlblocks.features, {"groups": bytes(63)}, "blocks, groups, elements"),
    (htmlblocks.features, {"elements": np.array([-1, 0, 2, 0, 0, 0], np.int32).tobytes()}, "elements"),
    (htmlblocks.features, {"elements": np.array([0, 0, 1, 0, 0, 0], np.int32).tobytes()}, "elements"),
    (htmlblocks.features, {"said": bytes(8)}, "said"),
    (htmlblocks.words, {"text": b""}, "text, blocks"),
    (htmlblocks.say, {"blocks": bytes(7)}, "blocks"),
    (htmlblocks.say, {"blocks": bytes(8)}, "text, blocks"),
    (htmlblocks.say, {"lexicon": np.zeros(384, np.int32)}, "lexicon: 384 slots given"),
    (htmlblocks.say, {"lexicon": np.zeros(128, np.int32)}, "lexicon: 128 slots given"),
    (htmlblocks.features, {"values": u4(65)}, "blocks"),
    (htmlblocks.score, {"depth": 9}, "depth: 9 given"),
    (htmlblocks.score, {"features": np.array([999], np.uint16)}, "features, edges, leaves"),
    (htmlblocks.score, {"leaves": np.zeros(3, np.int32)}, "features, edges, leaves"),
    (htmlblocks.score, {"out": np.zeros(2, np.int32)}, "out"),
    (trees.score, {"width": 0}, "width: 0 given"),
    (trees.score, {"rows": u4(4)}, "rows"),
    (trees.score, {"features": np.array([3], np.uint16)}, "features, edges, leaves"),
    (trees.gradients, {"weights": np.ones(3, np.int32)}, "arrays of one length"),
    (trees.probabilities, {"out": np.zeros(3, np.int32)}, "arrays of one length"),
    (trees.grow, {"depth": 0}, "depth: 0 given"),
    (trees.grow, {"bins": np.full(4, 64, np.uint8)}, "do not fit"),
    (trees.grow, {"rows": np.array([2], np.int32)}, "do not fit"),
    (trees.grow, {"features": np.array([-1], np.int32)}, "do not fit"),
    (trees.grow, {"splits": np.zeros(3, np.int32)}, "do not fit"),
    (trees.grow, {"penalty": 0.0}, "do not fit"),
    (trees.grow, {"gradients": np.full(4, 2**31 - 1, np.int32)}, "gradients: sums above"),
    (markup.places, {"words": ()}, "words: their number: 0 given, 1 to 16"),
    (markup.places, {"words": (b"",)}, "words: the length of one: 0 given, 1 to 64"),
    (markup.places, {"words": (b"a" * 65,)}, "words: the length of one"),
    (markup.places, {"until": -1}, "until: -1 given"),
    (markup.places, {"until": HUGE}, "until: a number above"),
    (markup.places, {"most": 0}, "most: 0 given"),
    (markup.hidden, {"until": -1}, "until: -1 given"),
    (markup.open_tags, {"places": i8(-1)}, "places: ascending values from 0 to 4"),
    (markup.open_tags, {"places": i8(5)}, "places: ascending"),
    (markup.open_tags, {"places": i8(3, 2)}, "places: ascending"),
    (jaccard.cluster, {"offsets": i8(0, 2, 1)}, "offsets: ascending values from 0 to 3"),
    (jaccard.cluster, {"offsets": i8(0, 4, 3)}, "offsets"),
    (jaccard.cluster, {"offsets": i8(1, 1, 3)}, "offsets"),
    (jaccard.cluster, {"offsets": i8(0, -(2**63), 3)}, "offsets"),
    (jaccard.cluster, {"offsets": i8(2**63 - 1, -(2**63), 3)}, "offsets"),
    (jaccard.cluster, {"offsets": i8()}, "offsets"),
    (jaccard.cluster, {"starts": i8()}, "starts"),
    (jaccard.cluster, {"starts": i8(0, 3)}, "starts: ascending values from 0 to 2"),
    (jaccard.cluster, {"starts": i8(0, 3, 2)}, "starts"),
    (jaccard.cluster, {"starts": i8(-1, 2)}, "starts"),
    (jaccard.cluster, {"threshold": 0.0}, "threshold"),
    (jaccard.cluster, {"threshold": float("nan")}, "threshold"),
    (jaccard.cluster, {"representative": u4(1)}, "representative"),
    (jaccard.cluster, {"shared": u4(3)}, "shared"),
    (clusters.link, {"permutations": 0}, "permutations: 0 given"),
    (clusters.link, {"permutations": HUGE}, "permutations"),
    (clusters.link, {"minimum": 17}, "minimum: 17 given, 1 to 16"),
    (clusters.link, {"always": 0}, "always"),
    (clusters.link, {"starts": i8(0, 5)}, "starts"),
    (clusters.link, {"starts": i8(0, 5, 4)}, "starts"),
    (clusters.link, {"starts": i8()}, "starts"),
    (clusters.link, {"sketches": np.zeros(33, np.uint8)}, "rows"),
    (clusters.link, {"protected": np.zeros(3, np.uint8)}, "protected"),
    (clusters.assign, {"certain": 0}, "certain: 0 given, 1 to 3"),
    (clusters.assign, {"starts": i8(0, -(2**63), 4)}, "starts"),
    (clusters.assign, {"signatures": u4(11)}, "rows"),
    (clusters.assign, {"matches": u4(3)}, "matches"),
    (clusters.assign, {"representative": u4(5)}, "representative"),
    (lines.hash_lines, {"table": u4(0x10FFFF)}, "table: 0x110000 uint32"),
    (substrings.anchors, {"table": u4(0x10FFFF)}, "table: 0x110000 uint32"),
    (substrings.windows, {"table": u4(0x10FFFF)}, "table: 0x110000 uint32"),
    (substrings.windows, {"size": 49}, "size: 49 given, 50 to 65536 is allowed"),
    (substrings.windows, {"size": 65537}, "size"),
    (substrings.windows, {"key": b"k" * 24}, "key: 32 bytes or none are needed, 24 given"),
    (lines.hash_lines, {"key": b"k" * 32}, "key: 24 bytes or none are needed, 32 given"),
    (substrings.windows, {"size": -(2**63)}, "size"),
    (minhash.signatures, {"table": u4(3)}, "table"),
    (minhash.signatures, {"ngram": 0}, "ngram: 0 given, 1 to 256"),
    (minhash.signatures, {"ngram": 257}, "ngram"),
    (minhash.signatures, {"unit": 3}, "unit: 3 given, 0 to 2"),
    (minhash.signatures, {"a": u4(0), "b": u4(0), "out": u4(0)}, "a, b and out"),
    (minhash.signatures, {"b": u4(4)}, "a, b and out"),
    (minhash.signatures, {"out": u4(9)}, "a, b and out"),
    (minhash.signatures, {"a": u4(65_537), "b": u4(65_537), "out": u4(2 * 65_537)}, "1 to 65536"),
    (minhash.shingles, {"ngram": -1}, "ngram"),
    (minhash.shingles, {"table": u4(0x110001)}, "table"),
    (documents.find, {"begins": i8(0, 1)}, "begins, stops and shifts: 2, 1 and 1 values given"),
    (documents.find, {"shifts": i8()}, "begins, stops and shifts"),
    (masks.fill, {"options": 8}, "options: 8 given, 0 to 7"),
    (masks.fill, {"eos": HUGE}, "eos"),
    (masks.fill, {"counts": i8(1, 1)}, "starts, counts, valid"),
    (masks.fill, {"counts": i8(2**63 - 1, 2)}, "starts, counts, valid"),
    (masks.fill, {"valid": i8(6, 4)}, "starts, counts, valid"),
    (masks.fill, {"valid": i8(-1, 4)}, "starts, counts, valid"),
    (masks.fill, {"starts": i8(2, 3, 0)}, "starts, counts, valid"),
    (masks.fill, {"starts": i8(5, 0, 3)}, "starts, counts, valid"),
    (masks.fill, {"tokens": np.arange(9)}, "tokens"),
    (masks.fill, {"loss": np.zeros(7, np.bool_)}, "tokens"),
    (masks.fill, {"bounds": np.zeros(7, np.int32)}, "bounds"),
    (pages.values, {"page": 0}, "page: 0 given, 1 to"),
    (pages.gather, {"page": 7}, "page: 7 given, 8 to"),
    (pages.gather, {"page": 12}, "page and itemsize: 12 and 2 given"),
    (pages.gather, {"itemsize": 3}, "page and itemsize: 8 and 3 given"),
    (pages.gather, {"itemsize": 16}, "itemsize: 16 given, 2 to 8"),
    (pages.gather, {"first": -1}, "first: -1 given"),
    (pages.gather, {"out": np.zeros(8, np.int64)}, "pieces and out: 10 values and 1 dimensions"),
    (pages.gather, {"pieces": i8(1, 2)}, "pieces and out: 2 values"),
    (pages.gather, {"blocks": []}, "pieces: piece 0 is in block 0, 0 to -1 are known"),
    (pages.gather, {"blocks": [(0, 9, bytes(4))]}, "blocks: a table of 4 bytes given, four for each of 2 pages"),
    (pages.gather, {"blocks": [(-1, 0, b"")]}, "descriptor: -1 given"),
    (pages.gather, {"blocks": [(0, HUGE, b"")]}, "length: a number above 64 bits"),
    (pages.gather, {"pieces": i8(7, 0, 0, 1, 0)}, "piece 0 is 1 tokens from 0 on"),
    (pages.gather, {"pieces": i8(7, 0, 1, 0, 0)}, "piece 0 is 0 tokens from 1 on"),
    (pages.gather, {"pieces": i8(7, 0, 0, -1, 0)}, "piece 0 is -1 tokens"),
    (pages.gather, {"pieces": i8(7, -1, 0, 0, 0)}, "piece 0 is in block -1"),
    (pages.gather, {"pieces": i8(6, 0, 0, 0, 0)}, "at 0 of row 6"),
    (pages.gather, {"pieces": i8(9, 0, 0, 0, 0)}, "at 0 of row 9"),
    (pages.gather, {"pieces": i8(7, 0, 0, 0, 5)}, "at 5 of row 7"),
    (permutation.permute, {"keys": u8(*range(7))}, "8 keys"),
    (permutation.permute, {"out": u8(0)}, "as many of out as of x"),
    (permutation.permute, {"n": u8(9, 9, 9)}, "keys, x, out, n, tweak: 8, 2, 2, 3 and 2 values given"),
    (permutation.permute, {"tweak": u8()}, "one of n and tweak"),
    (permutation.permute, {"x": u8(0, 10)}, "x and n: value 1 is 10 of 10, values below n are needed"),
    (permutation.permute, {"n": u8(9, 0)}, "value 1 is 8 of 0"),
    (permutation.permute, {"n": u8(2**52 + 1)}, "value 0 is 0 of 4503599627370497"),
    (rows.pad, {"out": np.zeros(8, np.int64)}, "out and valid: 1 dimensions and 2 values"),
    (rows.pad, {"valid": i8(4, 1, 1)}, "out and valid: 2 dimensions and 3 values"),
    (rows.pad, {"valid": i8(4, 5)}, "valid: 5 given, 0 to 4"),
    (rows.pad, {"valid": i8(-1, 4)}, "valid: -1 given"),
    (rows.gather, {"block": 0}, "block: 0 given"),
    (rows.gather, {"first": HUGE}, "first: a number above 64 bits"),
    (rows.gather, {"out": np.zeros(8, np.int64)}, "pieces and out: 10 values and 1 dimensions"),
    (rows.gather, {"pieces": i8(1, 2)}, "pieces and out: 2 values"),
    (rows.gather, {"labels": np.zeros(8, np.int64)}, "labels: 8 values given"),
    (rows.gather, {"shards": {}}, "shards: nothing for shard 3"),
    (rows.gather, {"first": 6}, "pieces: piece 1 is 4 tokens from 0 on, at 0 of row 8"),
    (runs.cut, {"begins": i8(0)}, "lengths: "),
    (runs.cut, {"starts": i8(0, 3)}, "lengths: "),
    (runs.cut, {"blocks": i8(0, 1)}, "lengths: "),
    (runs.cut, {"sizes": i8()}, "lengths: "),
    (runs.cut, {"places": i8()}, "lengths: "),
    (runs.cut, {"data": np.zeros(7, np.uint8)}, "lengths: "),
    (runs.cut, {"starts": i8(0, 6, 5)}, "starts: ascending values"),
    (runs.cut, {"starts": i8(-1, 3, 5)}, "starts: ascending values"),
    (runs.cut, {"starts": i8(0, 3, 2**63 - 1)}, "starts: "),
    (runs.cut, {"base": 2**62}, "base: 4611686018427387904 given, 0 to 4611686018427387899"),
    (runs.cut, {"base": -1}, "base: -1 given"),
    (runs.cut, {"runs": i8(-1, 0)}, "blocks and runs: segment 0"),
    (runs.cut, {"runs": i8(2**63 - 1, 0)}, "blocks and runs: segment 0"),
    (runs.cut, {"runs": i8(65, 0)}, "blocks and runs: segment 0"),
    (runs.cut, {"runs": i8(2, 1)}, "blocks and runs: segment 1"),
    (runs.cut, {"blocks": i8(-1, 0, 0)}, "blocks and runs: segment 0"),
    (runs.cut, {"blocks": i8(1, 2, 2)}, "blocks and runs: segment 0"),
    (runs.cut, {"begins": i8(0, -1)}, "begins and ends: row 1 is from -1 to 5"),
    (runs.cut, {"ends": i8(5, 0)}, "begins and ends: row 1"),
    (runs.cut, {"ends": i8(6, 5)}, "begins and ends: row 0"),
]


@pytest.mark.parametrize(("function", "changed", "sentence"), WRONG_VALUES)
def test_values_out_of_bounds_are_refused(function: Callable[..., Any], changed: Arguments, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(function, changed)


# Any object is true or false.
TRUTHS = ("any_case", "characters", "ends_alone", "inner", "inverse", "unigram", "prefix", "trim")


@pytest.mark.parametrize("function", list(GOOD), ids=name_of)
def test_objects_of_another_kind_are_refused(function: Callable[..., Any]) -> None:
    for name in GOOD[function]():
        if name in TRUTHS:
            continue
        with pytest.raises((TypeError, ValueError)):
            call(function, {name: object()})
    with pytest.raises(TypeError):
        function()


@pytest.mark.parametrize("block", [None, (0, 0), [0, 0, b""], (0, 0, bytearray()), (0.0, 0, b""), (0, "0", b"")])
def test_blocks_are_tuples_of_numbers_and_bytes(block: Any) -> None:
    with pytest.raises(TypeError):
        call(pages.gather, {"blocks": [block]})


@pytest.mark.parametrize("texts", [["a", b"b"], ["a", None], 3])
def test_texts_are_strings(texts: Any) -> None:
    for function in (lines.hash_lines, minhash.signatures, substrings.anchors):
        with pytest.raises(TypeError):
            call(function, {"texts": texts})


@pytest.mark.parametrize("stop_words", [((1,),), (["the"],), ("the",), [("the",)], ((b"the",),)])
def test_stop_words_are_tuples_of_strings(stop_words: Any) -> None:
    with pytest.raises(TypeError):
        call(heuristics.measure, {"stop_words": stop_words})


def test_merges_and_ids_may_be_bytes_at_any_address() -> None:
    """Words of 32 bits at an odd address: loaded byte by byte."""
    merges = np.array([97, 98, 300], np.uint32).tobytes()
    for offset in range(4):
        ids = memoryview(bytes(offset) + np.arange(256, dtype=np.uint32).tobytes())[offset:]
        rows_ = memoryview(bytes(offset) + merges)[offset:]
        encoder = bpe.Encoder("gpt2", ids, rows_, CLASSES)  # type: ignore[arg-type]
        assert encoder.encode("abc") == np.array([300, 99], np.uint32).tobytes()


def test_the_space_is_whitespace() -> None:
    """The patterns take the one before a word along: else they would go on for ever."""
    with pytest.raises(ValueError, match="the space must be whitespace"):
        bpe.Encoder("gpt2", np.arange(256, dtype=np.uint32), u4(0), bytes(0x110000))


def test_whole_is_copied() -> None:
    """A dict that changes later, or keys with code of their own, cannot reach an encoder at work."""
    whole = {b"ab": 7}
    encoder = bpe.Encoder("gpt2", np.arange(256, dtype=np.uint32), u4(0), CLASSES, whole)
    whole[b"ab"] = -1
    assert encoder.encode("ab") == np.array([7], np.uint32).tobytes()

    class Piece(bytes):
        """Equal to nothing, at any price."""

    with pytest.raises(ValueError, match="whole"):
        bpe.Encoder("gpt2", np.arange(256, dtype=np.uint32), u4(0), CLASSES, {Piece(b"ab"): 7})
