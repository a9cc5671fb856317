import re
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasketch import MinHash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.signatures import (
    SignatureParams,
    character_table,
    compute_signatures,
    fixed_width,
    name_codes,
    permutation_parameters,
    read_signature_part,
    scheme_of,
    shingle_hashes,
    signature_table,
)
from refinery.transforms.native import minhash
from tests.native.unicode_scripts import is_unspaced
from tests.sampling import examples

SMALL = SignatureParams(permutations=16)
MASK = 2**64 - 1
SEED, PRIME, ROLL = 0x243F6A8885A308D3, 0x9E3779B97F4A7C15, 0xD1342543DE82EF95


# --- the same thing once more, in plain Python, from the module's description -------------------------------------


def fmix64(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return h ^ h >> 33


def hash_characters(characters: str) -> int:
    h = SEED
    for character in characters:
        h = (h ^ ord(character)) * PRIME & MASK
    return fmix64(h)


def kind(character: str) -> str:
    if character.isalnum():
        return "solitary" if is_unspaced(character) else "letter"
    return "mark" if unicodedata.category(character).startswith("M") else "border"


def split(text: str) -> list[str]:
    words: list[str] = []
    before = "border"
    for character in text:
        now = kind(character)
        if now == "mark" and before != "border":
            words[-1] += character
            continue
        if now == "mark":
            now = "border"
        if now == "letter" and before == "letter":
            words[-1] += character.lower()[0]
        elif now != "border":
            words.append(character.lower()[0])
        before = now
    return words


def characters_of(text: str) -> list[str]:
    units = ["" if kind(c) == "border" else c.lower()[0] for c in text]
    return [c or " " for i, c in enumerate(units) if c or (i and units[i - 1])]


COMMENTS = re.compile(r"(?s)[\0- \ufeff]+|/\*.*?(?:\*/|\Z)|(?://|#(?=[\0- #]|\Z|!(?!\[)))[^\n]*")
LINE = r"[ \t]*\r?(?:\n|\Z)"
DEFINE = rf"{LINE}[\0- ]*#[ \t]*define[ \t]+\1{LINE}"
GUARDS = (
    re.compile(r"#[ \t]*ifndef[ \t]+([0-9A-Za-z_]+)" + DEFINE),
    re.compile(r"#[ \t]*if[ \t]*![ \t]*defined[ \t]*([0-9A-Za-z_]+)" + DEFINE),
    re.compile(r"#[ \t]*if[ \t]*![ \t]*defined[ \t]*\([ \t]*([0-9A-Za-z_]+)[ \t]*\)" + DEFINE),
)
OPENINGS = (
    *GUARDS,
    re.compile(rf"#[ \t]*pragma[ \t]+once{LINE}"),
    re.compile(r"<\?php(?=[\0- ]|\Z)"),
    re.compile(r"<\?xml[^\n]*?\?>"),
)


def head_of(text: str) -> int:
    """Where the head of source code ends."""
    at, opened = 0, -1
    while at < len(text):
        guard = next((found for each in GUARDS if (found := each.match(text, at))), None)
        comment = None if guard else COMMENTS.match(text, at)
        opening = guard or next((found for each in OPENINGS if (found := each.match(text, at))), None)
        if not comment and not opening:
            return at
        if not comment and opened < 0:
            opened = at
        at = (comment or opening).end()
    return opened if opened >= 0 else len(text)


def tokens_of(text: str) -> list[str]:
    tokens: list[str] = []
    before = "border"
    for character in text:
        now = "letter" if character == "_" else kind(character)
        if (now == "letter" and before == "letter") or (now == "mark" and before != "border"):
            tokens[-1] += character
            continue
        before = "border" if now == "mark" else now
        if before != "border" or "!" <= character <= "~":
            tokens.append(character)
    return tokens


def reference_shingles(text: str, params: SignatureParams) -> list[int]:
    if not text:
        return []
    if params.unit == "word":
        units = split(text)
    elif params.unit == "code":
        units = tokens_of(text[head_of(text) :]) or tokens_of(text)
    else:
        units = characters_of(text)
        units = units[:-1] if units and units[-1] == " " else units
    hashes = [hash_characters(unit) for unit in units] or [hash_characters(text)]
    n = min(params.ngram, len(hashes))
    shingles = []
    for i in range(len(hashes) - n + 1):
        total = 0
        for value in hashes[i : i + n]:
            total = (total * ROLL + value) & MASK
        shingles.append(fmix64(total))
    found = [s >> 32 for s in shingles]
    return found if len(set(shingles)) > 1 else [*found, shingles[0] & 0xFFFFFFFF]


def reference_signature(shingles: list[int], params: SignatureParams) -> list[int]:
    a, b = (x.tolist() for x in permutation_parameters(params.permutations, params.seed))
    minima = [2**32 - 1] * params.permutations
    for h in shingles:
        h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        h ^= h >> 16
        minima = [min(m, (x * h + y) & 0xFFFFFFFF) for m, x, y in zip(minima, a, b, strict=True)]
    return minima


SIGNS = ("//", "/*", "*/", "#", "#!", "[", "\n", " ", "a_1", "=", "\ufeff", "\r\n", "\t", "(", ")", "?>")
DIRECTIVES = ("#ifndef a\n", "#ifndef b\n", "#define a\n", "# define a", "#if !defined(a)\n", "#if ! defined a\n")
SOURCE = st.lists(st.sampled_from([*SIGNS, *DIRECTIVES, "#pragma once\n", "<?php", "<?xml 1"])).map("".join)
TEXTS = SOURCE | st.text(
    st.one_of(st.sampled_from("aB c_,(d\u0301\u0e01\u0e34日カー٣ıİΣß'😀\ufe0f\ud800\0"), st.characters()), max_size=60
)


@settings(max_examples=examples(200), deadline=None)
@given(TEXTS, st.sampled_from([1, 2, 5, 9]), st.sampled_from(["word", "character", "code"]))
@example("", 5, "word")
@example("!!!", 5, "word")
@example("one", 5, "word")
@example("a a a a a a a a", 5, "word")
@example("\u0301x", 1, "word")
@example("// a\n/* b */ #! c\n# d\n#\n#include <e>", 2, "code")
@example("/* a", 1, "code")
@example("#", 1, "code")
@example("-\u0301x\u0301日\u0301y_\u0301", 1, "code")
def test_kernel_equals_plain_python(text, ngram, unit):
    params = SignatureParams(permutations=19, ngram=ngram, unit=unit, seed=3)
    expected = reference_shingles(text, params)
    assert shingle_hashes(text, params).tolist() == expected
    assert compute_signatures([text], params)[0].tolist() == reference_signature(expected, params)


@pytest.mark.parametrize(("permutations", "seed"), [(1, 1), (112, 1), (128, 7), (250, 2**32 - 1)])
def test_values_are_datasketchs_own(permutations, seed):
    params = SignatureParams(permutations=permutations, seed=seed)
    texts = [" ".join(f"w{i * i % m}" for i in range(m)) for m in (1, 4, 5, 6, 50, 513, 2000)]
    for text, signature in zip(texts, compute_signatures(texts, params), strict=True):
        theirs = MinHash(num_perm=permutations, seed=seed, scheme="affine32", hashfunc=int)
        theirs.update_batch(shingle_hashes(text, params).tolist())
        assert np.array_equal(theirs.hashvalues, signature)
    assert np.array_equal(MinHash(num_perm=permutations, seed=seed).hashvalues, compute_signatures([""], params)[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("don't stop-me_now", ["don", "t", "stop", "me", "now"]),
        ("e\u0301te\u0301 ÉTÉ", ["e\u0301te\u0301", "été"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("iPhone15は新しい", ["iphone15", "は", "新", "し", "い"]),
        ("漢a字b", ["漢", "a", "字", "b"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("x² ½ ٣", ["x²", "½", "٣"]),
        ("İstanbul", ["istanbul"]),
        ("❤\ufe0f", []),
    ],
)
def test_word_borders(text, words):
    assert split(text) == words
    ones = SignatureParams(ngram=1)
    expected = [fmix64(hash_characters(word)) >> 32 for word in words]
    assert shingle_hashes(text, ones)[: len(words)].tolist() == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("int f_1(char *p)", "int f_1 ( char * p )"),
        ("Ab->aB+=0x1F;", "Ab - > aB + = 0x1F ;"),
        ('s = "it\'s é…"', 's = " it \' s é "'),
        ("/* MIT */\n// MIT\n#pragma once", "# pragma once"),
        ("#!/bin/sh\n# MIT\nx = 1  # one", "x = 1 # one"),
        ("#![no_std]", "# ! [ no_std ]"),
        ("\ufeff//! docs\nfn a<'b>(){}", "fn a < ' b > ( ) { }"),
        ("// alone\n", "/ / alone"),
        ("/* open", "/ * open"),
        ("#ifndef X_H\n#define X_H\n\n/* MIT */\nint a;\n#endif", "int a ; # endif"),
        ("// one\n#if !defined(X)\r\n# define X\r\n// MIT\r\nint a;", "int a ;"),
        ("#pragma once\n// MIT\nint a;", "int a ;"),
        ("#!/usr/bin/env php\n<?php\n/* MIT */\n$a = 1;", "$ a = 1 ;"),
        ("# -*- coding: utf-8 -*-\n# MIT\nx = 1", "x = 1"),
        ("<?xml version='1.0'?>\n// MIT\na", "a"),
        ("#ifndef X\n#define Y\n// MIT\na", "# ifndef X # define Y / / MIT a"),
        ("#ifndef X\n#define X 1\n// MIT\na", "# ifndef X # define X 1 / / MIT a"),
        ("#if X\n#define X\na", "# if X # define X a"),
        ("// a\n#ifndef X\n#define X\n// b\n", "# ifndef X # define X / / b"),
    ],
)
def test_tokens_of_source_code(text, tokens):
    expected = [fmix64(hash_characters(token)) >> 32 for token in tokens.split()]
    found = shingle_hashes(text, SignatureParams(ngram=1, unit="code")).tolist()
    assert found[: len(expected)] == expected and len(found) <= len(expected) + 1


def test_layout_and_licence_do_not_tell_source_files_apart():
    """Jaccard of shingles: another layout and another licence change nothing, the same licence makes nothing alike."""
    licence = "// " + " ".join(f"word{i}" for i in range(80)) + "\n"
    one, other = (" ".join(f"{name}{i} = f({i});" for i in range(9)) for name in "ab")

    def alike(a: str, b: str, unit: str) -> float:
        sets = [set(shingle_hashes(text, SignatureParams(unit=unit)).tolist()) for text in (a, b)]
        return len(sets[0] & sets[1]) / len(sets[0] | sets[1])

    assert alike(licence + one, "/* MIT */\n" + one.replace(" ", "\n\t"), "code") == 1
    assert alike(licence + one, licence + other, "code") < 0.2 < 0.5 < alike(licence + one, licence + other, "word")


def test_golden_values():
    """Published signatures must stay comparable: whoever changes these changes the name of their scheme, too."""
    schemes = {unit: scheme_of(SignatureParams(unit=unit)) for unit in ("word", "character", "code")}
    assert schemes == {"word": "affine32/words-2", "character": "affine32/words-2", "code": "affine32/code-3"}
    golden = [
        ("The quick brown fox jumps over the lazy dog", "word", [21421492, 192475172, 44897976, 137247476]),
        ("日本語のテキスト", "word", [458434371, 1050929924, 692140836, 136866730]),
        ("The quick", "character", [2324591473, 233318232, 337628901, 401094238]),
        (
            "// Copyright\n#include <a>\nint f_1(char *p) { return p[0] == 'é'; } /* end */\n",
            "code",
            [49970223, 175248061, 157062155, 31731894],
        ),
        (
            "#ifndef A\n#define A\n/* Copyright */\n#include <a>\nint f_1(char *p) { return p[0] == 'é'; } /* end */\n",
            "code",
            [49970223, 175248061, 157062155, 31731894],
        ),
    ]
    for text, unit, values in golden:
        assert compute_signatures([text], SignatureParams(permutations=4, unit=unit))[0].tolist() == values


def test_wide_and_narrow_strings_hash_alike():
    text = "the quick brown fox jumps over the lazy dog"
    wide, wider = text + " …", text + " 😀"  # 2 and 4 bytes per character in memory, the same words
    signatures = compute_signatures([text, wide, wider], SMALL)
    assert (signatures == signatures[0]).all()


def test_short_and_empty_texts_stand_apart():
    texts = ["", "a", "b", "a b", "b a", "a b c d", "a b c d e", "!!!", "???", " ", "\ud800"]
    signatures = compute_signatures(texts, SMALL)
    assert len({tuple(s) for s in signatures.tolist()}) == len(texts)
    assert (signatures[0] == 2**32 - 1).all()
    assert np.array_equal(*compute_signatures(["", ""], SMALL))


def test_repeated_word_counts_once():
    few, many = compute_signatures(["spam " * 5, "spam " * 200_000], SMALL)
    assert np.array_equal(few, many)


def test_blocks_leave_no_seam():
    words = [f"w{i}" for i in range(3000)]
    params = SignatureParams(ngram=7)
    whole = shingle_hashes(" ".join(words), params)
    assert len(whole) == 3000 - 6
    for start in (0, 505, 506, 511, 512, 1023, 2990):
        assert shingle_hashes(" ".join(words[start : start + 7]), params)[0] == whole[start]


@pytest.mark.parametrize("text", ["x" * 3_000_000, "!" * 3_000_000, "\u0301" * 100_000, "日" * 300_000])
def test_extreme_texts_are_plain_work(text):
    assert compute_signatures([text], SMALL).shape == (1, 16)


def test_no_texts():
    assert compute_signatures([], SMALL).shape == (0, 16)


@pytest.mark.parametrize(
    ("field", "value"),
    [("permutations", 0), ("permutations", 5000), ("ngram", 0), ("ngram", 257), ("unit", "line"), ("seed", -1)],
)
def test_params_name_the_field(field, value):
    with pytest.raises(ValueError, match=rf"{field}: .*{value}.* given, .* allowed"):
        SignatureParams(**{field: value})


def test_kernel_refuses_what_it_cannot_take():
    a, b = permutation_parameters(4, 1)
    out = np.empty((1, 4), np.uint32)
    with pytest.raises(TypeError, match=r"texts\[0\]: str is needed, bytes given"):
        minhash.signatures([b"x"], character_table(), 5, 0, a, b, out)
    with pytest.raises(ValueError, match="out of shape"):
        minhash.signatures(["x", "y"], character_table(), 5, 0, a, b, out)
    with pytest.raises(ValueError, match="table"):
        minhash.signatures(["x"], character_table()[:10], 5, 0, a, b, out)
    with pytest.raises(ValueError, match="ngram"):
        minhash.shingles("x", character_table(), 0, 0)


# --- part files ------------------------------------------------------------------------------------------------------


def example_table(rows: int) -> pa.Table:
    signatures = compute_signatures([f"text {i}" for i in range(rows)], SMALL)
    return signature_table(
        ids=[i.to_bytes(16, "big") for i in range(rows)],
        ranks=[i.to_bytes(24, "big") for i in range(rows)],
        sources=[f"s{i % 3}" for i in range(rows)],
        domains=["web"] * rows,
        sizes=list(range(rows)),
        signatures=signatures,
    )


def test_part_round_trip(tmp_path):
    table = example_table(100)
    path = f"{tmp_path}/part.parquet"
    pq.write_table(table, path, compression="none", row_group_size=30)
    read = list(read_signature_part(path, 100, ["id", "source", "signature"]))
    assert [(first, t.num_rows) for first, t in read] == [(0, 30), (30, 30), (60, 30), (90, 10)]
    signatures = np.concatenate([fixed_width(t["signature"], 64).view("<u4") for _, t in read])
    assert np.array_equal(signatures, compute_signatures([f"text {i}" for i in range(100)], SMALL))
    codes = np.concatenate([name_codes(t["source"], ("s0", "s1", "s2")) for _, t in read])
    assert codes.tolist() == [i % 3 for i in range(100)]
    wanted = np.array([31, 99])
    assert [first for first, _ in read_signature_part(path, 100, ["id"], wanted)] == [30, 90]
    with pytest.raises(ValueError, match="100 rows found, 99 expected"):
        list(read_signature_part(path, 99, ["id"]))


def test_fixed_width_follows_slices_and_refuses_nulls():
    table = example_table(10).slice(3, 4)
    assert fixed_width(table["id"], 16)[:, -1].tolist() == [3, 4, 5, 6]
    assert fixed_width(table.slice(0, 0)["id"], 16).shape == (0, 16)
    with pytest.raises(ValueError, match="binary"):
        fixed_width(table["id"], 24)
    with pytest.raises(ValueError, match="1 nulls"):
        fixed_width(pa.chunked_array([pa.array([None, b"x" * 16], pa.binary(16))]), 16)


def test_unknown_source_is_named():
    with pytest.raises(ValueError, match=r"'s2' found, one of \['s0', 's1'\] is allowed"):
        name_codes(example_table(10)["source"], ("s0", "s1"))
