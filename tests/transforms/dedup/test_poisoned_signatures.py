"""A page written so that public hashes take it for another one: it replaces that one where nothing but them decides."""

import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from refinery.pipelines.recipe.checks import check_signature
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.document import Document
from refinery.transforms.core.resources import key_id
from refinery.transforms.dedup.deduplicate import DedupParams
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.signatures import (
    PUBLIC,
    WORD_KEY_BYTES,
    SignatureParams,
    compute_signatures,
    permutation_parameters,
    run_key,
    shingle_hashes,
    word_key,
)
from refinery.transforms.native import minhash
from tests.beam import make_document
from tests.transforms.dedup_parts import Sign, decide

PUBLIC_HASHES = SignatureParams()
PHRASE = "twenty bytes or more of it"
NGRAM = PUBLIC_HASHES.ngram


def words(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(count)]


def values(text: str) -> NDArray[np.uint32]:
    """[shingles, permutations], what a signature is the minimum of, by what everybody can read in this repository."""
    a, b = permutation_parameters(PUBLIC_HASHES.permutations, PUBLIC_HASHES.seed)
    h = shingle_hashes(text, PUBLIC_HASHES).copy()
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return (h ^ (h >> np.uint32(16)))[:, None] * a + b


def forge(rng: random.Random, original: str) -> str:
    """A page that has the five words of each of the original's minima and, for the rest, words of its own that spoil
    none of them; longer than the original."""
    source, every = original.split(), values(original)
    goal = every.min(axis=0)
    page: list[str] = []
    for start in sorted(set(every.argmin(axis=0).tolist())):
        wanted = source[start : start + NGRAM]
        tries = [[*words(rng, 2), *wanted] for _ in range(12)]
        spoilt = [(values(" ".join([*page[1 - NGRAM :], *more])) < goal).any(axis=0).sum() for more in tries]
        page += tries[int(np.argmin(spoilt))]
    while len(" ".join(page)) <= len(original):
        more = words(rng, 1)
        if not (values(" ".join([*page[1 - NGRAM :], *more])) < goal).any():
            page += more
    return " ".join(page)


def jaccard(a: str, b: str) -> float:
    one, other = (set(zip(*(text.split()[i:] for i in range(NGRAM)), strict=False)) for text in (a, b))
    return len(one & other) / len(one | other)


@pytest.fixture(scope="module")
def pages() -> list[Document]:
    """The forged page, which ranks first, and the original."""
    rng = random.Random(5)
    original = " ".join(words(rng, 2_500))
    forged = forge(rng, original)
    assert jaccard(forged, original) < 0.08
    mine, theirs = compute_signatures([forged, original], PUBLIC_HASHES)
    assert (mine == theirs).mean() > 0.95
    return [
        make_document(forged, "forged", source="web"),
        make_document(original, "original", source="web", position=1),
    ]


def keyed(monkeypatch: pytest.MonkeyPatch, secret: str = PHRASE) -> SignatureParams:
    monkeypatch.setenv("REFINERY_TEST_KEY", secret)
    return SignatureParams(key="env:REFINERY_TEST_KEY", key_id=key_id(secret.encode(), "signature"))


def sign(docs: list[Document], params: SignatureParams) -> NDArray[np.uint32]:
    return compute_signatures([doc.text for doc in docs], params)


def test_a_forged_estimate_decides_nothing_by_default(tmp_path: Path, pages: list[Document]) -> None:
    by_estimate = decide(tmp_path / "estimate", pages, DedupParams(near=NearParams(verify="signature")))
    assert by_estimate["original"]["kept_id"] == pages[0].id and by_estimate["original"]["similarity"] > 0.95
    assert not any(row["removed"] for row in decide(tmp_path / "default", pages, DedupParams()).values())


def test_nor_one_forged_without_the_secret(
    tmp_path: Path, pages: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    params = keyed(monkeypatch)
    signed: Sign = partial(sign, params=params)  # type: ignore[assignment]
    near = NearParams(verify="signature")
    assert not any(row["removed"] for row in decide(tmp_path, pages, DedupParams(near=near), sign=signed).values())
    forged, original = signed(pages)
    assert (forged == original).mean() < 0.3


def test_auto_is_exact_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NearParams().settled(PUBLIC_HASHES).verify == "exact"
    assert NearParams().settled(keyed(monkeypatch)).verify == "signature"
    assert NearParams(verify="exact").settled(keyed(monkeypatch)).verify == "exact"


@pytest.mark.parametrize("unit", ["word", "character", "code"])
def test_keyed_hashes_tell_the_same_shingles_apart(unit: str) -> None:
    text = "The 漢字 quick_brown fox jumps over; the quick brown fox jumps over the 1 lazy dog. Ünï " * 3
    params = SignatureParams(unit=unit, ngram=3)  # type: ignore[arg-type]
    public = shingle_hashes(text, params)
    distinct = [public]
    for key in (run_key("a"), run_key("b")):
        found = shingle_hashes(text, params, key)
        assert np.array_equal(public[:, None] == public[None, :], found[:, None] == found[None, :])
        distinct.append(found)
    assert len({part.tobytes() for part in distinct}) == 3


def test_keyed_hashes_are_those_of_the_description() -> None:
    """Computed again in Python from the docstring of signatures.py."""
    key = run_key("salt")
    prime, mask = 2**61 - 1, 2**64 - 1
    start, point, x = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8, 16))

    def fmix64(h: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            h = (h ^ h >> 33) * factor & mask
        return h ^ h >> 33

    def word(text: str) -> int:
        h = start % prime
        for character in text:
            h = (h + ord(character) + 1) * (2 + point % (prime - 2)) % prime
        return fmix64(h ^ x)

    expected = [fmix64(word(one)) >> 32 for one in ("some", "plain", "words", "𝒜b")]
    assert shingle_hashes("Some plain, words 𝒜b", SignatureParams(ngram=1), key).tolist() == expected


def test_secrets_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = ["one two three four five six seven"]
    first, again = (compute_signatures(text, keyed(monkeypatch)) for _ in range(2))
    other = compute_signatures(text, keyed(monkeypatch, "another secret, as long"))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert not np.array_equal(first, compute_signatures(text, PUBLIC_HASHES))
    assert word_key(PUBLIC_HASHES) == PUBLIC and len(word_key(keyed(monkeypatch))) == WORD_KEY_BYTES

    (tmp_path / "key").write_text(PHRASE + "\n")
    from_file = keyed(monkeypatch).replace(key=str(tmp_path / "key"))
    assert word_key(from_file) == word_key(keyed(monkeypatch))
    assert from_file.told() == keyed(monkeypatch).told()  # where it is decides nothing
    assert "key" not in PUBLIC_HASHES.told() and "key_id" not in PUBLIC_HASHES.told()


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"key": "env:REFINERY_TEST_KEY"}, r"^signature\.key_id: none given, the secret's is '[0-9a-f]{8}'$"),
        ({"key": "env:REFINERY_TEST_KEY", "key_id": "00000000"}, r"^signature\.key_id: '00000000' given, the secret's"),
        ({"key": "env:NOT_THERE"}, r"^signature\.key: 0 bytes in 'env:NOT_THERE' given, 16 or more are needed$"),
        ({"key": "/nowhere/key"}, r"^signature\..*No such file"),
        ({"key_id": "00000000"}, r"signature\.key_id: '00000000' given, only with key is it allowed"),
    ],
)
def test_a_secret_that_is_not_there(
    section: dict[str, str], problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REFINERY_TEST_KEY", PHRASE)
    data = {
        "name": "x",
        "sources": [{"name": "web", "paths": ["a.jsonl"]}],
        "tokenizer": {"path": "t.json"},
        "signature": section,
    }
    with pytest.raises(RecipeError, match=problem) as error:
        check_signature(parse_recipe(data))
    assert PHRASE not in str(error.value)


def test_the_kernel_refuses_keys_of_other_lengths() -> None:
    table = np.zeros(0x110000, np.uint32)
    for size in (1, 23, 25, 48):
        with pytest.raises(ValueError, match=f"key: 24 bytes or none are needed, {size} given"):
            minhash.shingles("text", table, 5, 0, bytes(size))
