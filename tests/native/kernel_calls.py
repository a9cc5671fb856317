"""Kernel functions with arguments that they take: what tests of wrong arguments change."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from refinery.loader.native import best_fit, documents, layouts, masks, pages, permutation, row_pieces, rows, runs
from refinery.transforms.dedup.signatures import character_table
from refinery.transforms.native import (
    attributes,
    bpe,
    clusters,
    counting,
    cues,
    datatrove,
    heuristics,
    htmlblocks,
    jaccard,
    lines,
    markup,
    minhash,
    ngram_costs,
    ngrams,
    pieces,
    signs,
    substrings,
    textclean,
    trees,
)
from refinery.transforms.redaction.prefilter.beginnings import Beginning
from refinery.transforms.redaction.prefilter.grammar import Byte, Repeat
from refinery.transforms.redaction.prefilter.tables import Cue, tables_of

Arguments = dict[str, Any]


def cue_tables() -> Arguments:
    """Those of two patterns: a word in quotes, also at the beginning of a text, and a run of letters."""
    letter = sum(1 << byte for byte in range(97, 123))
    start = Beginning((1 << 34, letter), (Repeat(Byte(letter), 0, None), Byte(1 << 34)))
    cues_of_it = [Cue(0, start, 0), Cue(0, start._replace(first=True), 0)]
    return dict(tables_of(cues_of_it, [9, 1], [(letter, 1, 16), (letter, 1, 20)]))


def u4(size: int) -> Any:
    return np.zeros(size, np.uint32)


def i8(*values: int) -> Any:
    return np.array(values, np.int64)


def u8(*values: int) -> Any:
    return np.array(values, np.uint64)


CLASSES = bytes(32) + b"\3" + bytes(0x110000 - 33)  # the space alone is whitespace


# Kernel function -> arguments by name that it takes, in order.
def page_arrays() -> Arguments:
    _, blocks, groups, elements, _, _ = htmlblocks.parse("<p>x", 9)
    given = {"blocks": blocks, "groups": groups, "elements": elements, "said": bytes(16)}
    return given | {"values": u4(1), "titles": u4(1), "source": 4}


def text_of_page() -> Arguments:
    text, blocks, *_ = htmlblocks.parse("<p>x", 9)
    return {"text": text, "blocks": blocks}


def one_tree() -> Arguments:
    return {"features": np.zeros(1, np.uint16), "edges": u4(1), "leaves": np.zeros(2, np.int32), "depth": 1}


GOOD: dict[Callable[..., Any], Callable[[], Arguments]] = {
    bpe.Encoder: lambda: {
        "pattern": "gpt2",
        "byte_ids": np.arange(256, dtype=np.uint32),
        "merges": u4(6),
        "classes": CLASSES,
        "whole": {b"ab": 7},
    },
    pieces.Encoder: lambda: {
        "unigram": True,
        "pieces": b" aab",
        "ends": np.array([2, 4], np.uint32),
        "ids": np.array([1, 2], np.uint32),
        "values": bytes(8),
        "whole": b"\0\0",
        "byte_ids": b"",
        "unknown": 0,
        "unknown_score": -1.0,
        "charsmap": b"",
        "prefix": True,
        "trim": True,
        "merges": b"",
    },
    pieces.joins: lambda: {
        "tokens": b"aabb",
        "ends": np.array([1, 3, 4], np.uint32),
        "ranks": np.array([0, 2, 1], np.uint32),
    },
    heuristics.measure: lambda: {
        "text": "the text",
        "stop_words": (("the",),),
        "max_ngram": 10,
        "short_line_chars": 3,
        "min_line_words": 1,
        "max_word_chars": 9,
        "flags": 511,
    },
    counting.quality: lambda: {"text": "the text", "stop_words": (("the",),), "units": 0},
    counting.repeated_pieces: lambda: {"text": "the text", "units": 1},
    counting.repeated_ngrams: lambda: {"text": "the text", "most": 10, "units": 0},
    counting.c4_lines: lambda: {"text": "the text", "ends_alone": True, "min_words": 1},
    counting.words_of: lambda: {"text": "the text"},
    datatrove.quality: lambda: {"text": "the text"},
    datatrove.repeated_pieces: lambda: {"text": "the text"},
    datatrove.kept_lines: lambda: {"text": "the text", "short_line_chars": 3},
    datatrove.stripped_lines: lambda: {"text": "the text"},
    attributes.most: lambda: {"html": "<p>"},
    signs.has_control: lambda: {"data": b"a text"},
    signs.repeats_line: lambda: {"data": b"line\nline", "least": 4, "times": 2},
    signs.lines_end_in: lambda: {"data": b"a;\nb;", "ends": b";", "times": 2},
    signs.count_lines: lambda: {"text": "a text"},
    markup.places: lambda: {"page": "<p>", "words": (b"p",), "until": 9, "any_case": True, "most": 9},
    markup.hidden: lambda: {"page": "<p>", "until": 9},
    markup.open_tags: lambda: {"page": "<p>x", "places": i8(0, 3)},
    ngram_costs.word_keys: lambda: {"text": "the text", "table": character_table()},
    ngram_costs.score: lambda: {
        "text": "the text",
        "table": character_table(),
        "keys": np.zeros(4, np.int64),
        "costs": np.zeros(8, np.int32),
    },
    ngram_costs.insert: lambda: {
        "given": i8(3, 4),
        "found": np.zeros(4, np.int32),
        "keys": np.zeros(4, np.int64),
        "costs": np.zeros(8, np.int32),
    },
    htmlblocks.parse: lambda: {"html": "<p>x", "most": 9},
    htmlblocks.words: lambda: text_of_page(),
    htmlblocks.say: lambda: text_of_page() | {"lexicon": np.zeros(256, np.int32)},
    htmlblocks.features: lambda: page_arrays(),
    htmlblocks.score: lambda: page_arrays() | one_tree() | {"out": np.zeros(1, np.int32)},
    trees.score: lambda: {"rows": u4(3), "width": 3} | one_tree() | {"out": np.zeros(1, np.int32)},
    trees.gradients: lambda: {
        "scores": np.zeros(2, np.int32),
        "targets": np.zeros(2, np.int32),
        "weights": np.ones(2, np.int32),
        "out": np.zeros(4, np.int32),
    },
    trees.probabilities: lambda: {"scores": np.zeros(2, np.int32), "out": np.zeros(2, np.int32)},
    trees.grow: lambda: {
        "bins": np.zeros(4, np.uint8),
        "width": 2,
        "gradients": np.ones(4, np.int32),
        "rows": np.arange(2, dtype=np.int32),
        "features": np.arange(2, dtype=np.int32),
        "depth": 1,
        "penalty": 1.0,
        "least": 1.0,
        "rate": 0.1,
        "splits": np.zeros(2, np.int32),
        "leaves": np.zeros(2, np.int32),
    },
    jaccard.cluster: lambda: {
        "values": np.array([1, 2, 9], np.uint32),
        "offsets": i8(0, 1, 3),
        "starts": i8(0, 2),
        "threshold": 0.5,
        "representative": u4(2),
        "shared": u4(2),
    },
    cues.Cues: cue_tables,
    clusters.link: lambda: {
        "sketches": np.zeros((4, 8), np.uint8),
        "starts": i8(0, 1, 4),
        "permutations": 16,
        "minimum": 4,
        "always": 64,
        "protected": np.zeros(4, np.uint8),
    },
    clusters.assign: lambda: {
        "signatures": np.zeros((4, 3), np.uint32),
        "starts": i8(0, 4),
        "permutations": 3,
        "minimum": 1,
        "certain": 2,
        "always": 64,
        "protected": np.zeros(4, np.bool_),
        "representative": u4(4),
        "matches": u4(4),
    },
    lines.hash_lines: lambda: {"texts": ["a", "b\nc"], "table": character_table(), "key": b""},
    substrings.anchors: lambda: {"texts": ["a", "b " * 60], "table": character_table()},
    substrings.windows: lambda: {"text": "b " * 60, "table": character_table(), "size": 50, "key": b""},
    minhash.signatures: lambda: {
        "texts": ["a", "b c"],
        "table": character_table(),
        "ngram": 2,
        "unit": 0,
        "a": u4(5),
        "b": u4(5),
        "out": np.zeros((2, 5), np.uint32),
    },
    minhash.shingles: lambda: {"text": "a b", "table": character_table(), "ngram": 2, "unit": 2},
    ngrams.scan: lambda: {
        "text": "the text",
        "table": character_table(),
        "salt": 1,
        "lengths": i8(13, 26),
        "shorter": i8(8, 9),
        "keys": i8(1, 2, 3),
        "filter": i8(0, 0),
        "tails": i8(0),
    },
    ngrams.windows: lambda: {"text": "a b", "table": character_table(), "ngram": 13, "salt": 0},
    textclean.clean: lambda: {"text": "a b", "inner": True},
    textclean.text_id: lambda: {"text": "a b"},
    textclean.utf8_size: lambda: {"text": "a b"},
    textclean.has_surrogates: lambda: {"text": "a b"},
    best_fit.pack: lambda: {
        "lengths": i8(3, 2),
        "groups": i8(0, 2),
        "capacity": 4,
        "row_of": i8(0, 0),
        "openers": i8(0, 0),
    },
    layouts.lay_out: lambda: {  # two pieces in a row each, one of them alone in its block
        "starts": i8(0, 3, 7),
        "reads": np.array([3, 4, 2], np.int32),
        "piece_bounds": i8(0, 2, 3),
        "row_bounds": i8(0, 2, 3),
        "capacity": 4,
        "noise": 9,
        "key": 1,
        "wanted": i8(0, 1),
        "at": i8(0, 5),
        "ring": np.zeros(8, np.int32),
    },
    row_pieces.find: lambda: {
        "rows": i8(1, -1, 2),
        "row_bounds": i8(0, 2, 3),
        "piece_bounds": i8(0, 2, 3),
        "slots": i8(0, 5),
        "layouts": np.array([0, 1, 2, 1, 0, 0, 1, 0], np.int32),
        "starts": i8(0, 3, 7),
        "reads": np.array([3, 4, 2], np.int32),
        "parts": i8(0, 3, 3, 9),
    },
    documents.find: lambda: {"offsets": i8(0, 3, 9), "begins": i8(0), "stops": i8(9), "shifts": i8(1)},
    masks.fill: lambda: {
        "tokens": np.arange(10),
        "starts": i8(2, 0, 3),
        "counts": i8(1, 2),
        "valid": i8(5, 4),
        "options": 3,
        "eos": 1,
        "labels": np.zeros(8, np.int64),
        "loss": np.zeros(8, np.bool_),
        "positions": np.zeros(8, np.int32),
        "documents": np.zeros(8, np.int32),
        "bounds": np.zeros(8, np.int32),
    },
    pages.values: lambda: {"data": bytes(9), "page": 8},
    pages.gather: lambda: {
        "blocks": [(0, 0, b"")],
        "page": 8,
        "itemsize": 2,
        "pieces": np.array([[7, 0, 0, 0, 0], [8, 0, 0, 0, 4]]),
        "first": 7,
        "out": np.zeros((2, 4), np.int64),
    },
    permutation.permute: lambda: {
        "x": u8(0, 8),
        "n": u8(9, 10),
        "keys": u8(*range(8)),
        "tweak": u8(1, 2),
        "inverse": False,
        "out": u8(0, 0),
    },
    rows.gather: lambda: {
        "shards": {3: (np.zeros(4, np.uint16), bytes([1]))},
        "block": 4,
        "pieces": np.array([[7, 3, 0, 4, 0], [8, 3, 0, 4, 0]]),
        "first": 7,
        "out": np.zeros((2, 4), np.int64),
        "labels": np.zeros((2, 3), np.int64),
    },
    rows.pad: lambda: {"out": np.zeros((2, 4), np.int64), "valid": i8(4, 1), "value": 7},
    runs.cut: lambda: {  # a segment of two runs, 1 + 2 and 1 token with gaps of 1, and a whole shard
        "begins": i8(0, 1),
        "ends": i8(5, 5),
        "starts": i8(0, 3, 5),
        "blocks": i8(0, 1, 1),
        "runs": i8(2, 0),
        "sizes": i8(9, 2),
        "numbers": i8(0, 4),
        "tokens": i8(6, 0)[:1],
        "origins": i8(1, 0)[:1],
        "places": i8(1 << 8 | 2, 0)[:1],
        "data": np.array([0b0110, 1] + 8 * [0], np.uint8),
        "base": 6,
    },
}
WRITTEN = {
    "row_of",
    "openers",
    "ring",
    "splits",
    "representative",
    "shared",
    "matches",
    "out",
    "labels",
    "loss",
    "positions",
    "documents",
    "bounds",
}


def name_of(function: Callable[..., Any]) -> str:
    return str(function.__name__)


def call(function: Callable[..., Any], changed: Mapping[str, Any]) -> Any:
    return function(*(GOOD[function]() | changed).values())
