"""A passage that public hashes take for another one's: under a key nothing that anybody can compute collides."""

import random
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.resources import key_id
from refinery.transforms.dedup.cut_lines import hash_lines, word_counts
from refinery.transforms.dedup.cut_substrings import SUBSTRINGS, SubstringParams
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.line_duplicates import mix_sources
from refinery.transforms.dedup.signatures import SignatureParams, run_key, word_key
from refinery.transforms.dedup.substring_hashes import GRAM, SPAN_WORDS, hash_windows, window_key
from tests.beam import make_document, run_and_collect
from tests.sampling import ALL
from tests.transforms.cutting_parts import SIGNATURE, SOURCES, write_parts
from tests.transforms.dedup.test_signatures import hash_characters
from tests.transforms.dedup.test_substring_hashes import BASE, PRIME, least_of

WORDS = 2_000_000  # that each of four places may have
LENGTH = 5
SEED, STEP = 0x243F6A8885A308D3, 0x9E3779B97F4A7C15  # of words.h
NEAR = 1 << 41  # sums below it are kept in the middle


def letters() -> NDArray[np.uint8]:
    """WORDS different words of LENGTH letters, a row each."""
    numbers = np.arange(WORDS)
    return np.stack([97 + numbers // 26**place % 26 for place in range(LENGTH)], axis=1).astype(np.uint8)


def hash_all(words: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The public hashes of words, modulo PRIME, as everybody can read in this repository."""
    h = np.full(len(words), SEED, np.uint64)
    for column in words.T:
        h = (h ^ column) * np.uint64(STEP)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ (h >> np.uint64(33))) * np.uint64(factor)
    return (h ^ (h >> np.uint64(33))) % np.uint64(PRIME)


def small_sums(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Sums modulo PRIME below NEAR of a value of each, and the places of both, as one number."""
    order = np.argsort(b)
    begin = (np.uint64(PRIME) - a) % np.uint64(PRIME)
    first, stop = np.searchsorted(b[order], begin), np.searchsorted(b[order], begin + np.uint64(NEAR))
    counts = stop - first
    rows = np.repeat(np.arange(len(a)), counts)
    other = order[np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first[rows]]
    return (a[rows] + b[other]) % np.uint64(PRIME), rows * WORDS + other


def forge(original: list[str]) -> list[list[str]]:
    """Passages with four other words and the hash of the original (Wagner 2002, with four lists: some seconds and 2^22
    numbers, where trying would take 2^61 passages)."""
    least, gram = least_of([hash_characters(word) for word in original], 0)
    places = [0, 1, 2, 3] if gram >= SPAN_WORDS - GRAM - gram else [46, 47, 48, 49]
    words = letters()
    values = hash_all(words).astype(object)
    powers = [pow(BASE, SPAN_WORDS - 1 - place, PRIME) for place in places]
    one, two, three, four = ((values * power % PRIME).astype(np.uint64) for power in powers)
    had = [hash_characters(original[place]) % PRIME * power for place, power in zip(places, powers, strict=True)]
    goal = np.uint64(sum(had) % PRIME)
    left, left_words = small_sums(one, two)
    right, right_words = small_sums((goal + np.uint64(PRIME) - three) % np.uint64(PRIME), np.uint64(PRIME) - four)
    found, at, also = np.intersect1d(left, right, return_indices=True)
    assert len(found)
    texts = []
    for i, j in zip(left_words[at].tolist(), right_words[also].tolist(), strict=True):
        forged = list(original)
        for place, number in zip(places, (*divmod(i, WORDS), *divmod(j, WORDS)), strict=True):
            forged[place] = bytes(words[number]).decode()
        texts.append(forged)
    return [text for text in texts if least_of([hash_characters(word) for word in text], 0) == (least, gram)]


def original() -> list[str]:
    rng = random.Random(7)
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(SPAN_WORDS)]


PHRASE = "sixteen bytes or more of it"
FORGED = ["xcqpc", "dlmfb", "frxtd", "usace"]  # by `forge`


@pytest.fixture
def pages() -> list[Document]:
    """The forged page, which ranks first, and the original."""
    texts = {"a": [*FORGED, *original()[4:]], "b": original()}
    pages = [make_document(" ".join(words), name, source=SOURCES[0]) for name, words in texts.items()]
    public = [hash_windows(page.text, SPAN_WORDS) for page in pages]
    assert public[0].anchors.tolist() == public[1].anchors.tolist()
    assert public[0].hashes.tolist() == public[1].hashes.tolist()
    return pages


@pytest.mark.skipif(not ALL, reason="10 s of arithmetic; make test-all")
def test_such_a_passage_is_found_in_seconds() -> None:
    assert [*FORGED, *original()[4:]] in forge(original())


def cut_pages(folder: Path, pages: list[Document], salt: str) -> int:
    """How many of the pages deduplication cuts something out of."""
    lists = list_parts(str(folder), write_parts(folder, [pages]))

    def decide(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        chosen = DedupParams(near=None, cutting=((SUBSTRINGS, SubstringParams()),))
        pipeline | Deduplicate(chosen, SIGNATURE, SOURCES, lists, salt=salt) | WriteVerdicts(str(folder), SOURCES)
        return take_side_outputs(pipeline)

    run_and_collect(decide)
    return sum(map(bool, pq.read_table(folder / "verdicts" / "part-0.parquet")["cut_spans"].to_pylist()))


def test_public_hashes_cut_a_passage_out_of_the_only_page_that_has_it(tmp_path: Path, pages: list[Document]) -> None:
    assert cut_pages(tmp_path, pages, "") == 1


def test_what_a_run_reads_makes_a_key_and_nothing_is_cut(tmp_path: Path, pages: list[Document]) -> None:
    for salt in ("one run", "another"):
        key = window_key(run_key(salt))
        hashes = [hash_windows(page.text, SPAN_WORDS, key).hashes.tolist() for page in pages]
        assert hashes[0] != hashes[1]
    assert cut_pages(tmp_path, pages, "one run") == 0


def test_sources_are_kept_apart_by_the_key() -> None:
    """A line of one source that counts as another one's in one run does so in no other."""
    lines = np.arange(1_000, dtype=np.uint64) * np.uint64(STEP)
    ours, theirs = np.zeros(1_000, np.uint32), np.ones(1_000, np.uint32)
    mixed = {key: mix_sources(lines, ours, 2, key) for key in (b"one", b"another")}
    for key, hashes in mixed.items():
        assert len(np.unique(hashes)) == 1_000  # nothing that differs becomes one
        assert not set(hashes.tolist()) & set(mix_sources(lines, theirs, 2, key).tolist())
    factor = [(int(h[1]) - int(h[0])) * pow(STEP, -1, 1 << 64) % (1 << 64) for h in mixed.values()]
    assert factor[0] != factor[1] and all(each % 2 for each in factor)
    # Of each line of theirs the one of ours with its hash, as the first run's key gives it, under the second one's key:
    steps = mix_sources(lines[:1], ours[:1], 2, b"one")
    twins = (mix_sources(lines, theirs, 2, b"one") - steps) * np.uint64(pow(factor[0], -1, 1 << 64))
    assert (mix_sources(twins, ours, 2, b"one") == mix_sources(lines, theirs, 2, b"one")).all()
    assert not (mix_sources(twins, ours, 2, b"another") == mix_sources(lines, theirs, 2, b"another")).any()


def test_lines_under_a_secret_have_other_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same number of words in their lowest bits; equal words stay equal."""
    secret = PHRASE
    monkeypatch.setenv("REFINERY_TEST_KEY", secret)
    signature = SignatureParams(key="env:REFINERY_TEST_KEY", key_id=key_id(secret.encode(), "signature"))
    text = "One line of words\n\nanother, 漢字\nONE line: of words"
    public, keyed = (hash_lines([text], key).values.to_numpy() for key in (b"", word_key(signature)))
    assert word_counts(keyed).tolist() == word_counts(public).tolist() == [4, 0, 3, 4]
    assert keyed[0] == keyed[3] != public[0] == public[3]
    assert keyed[1] == public[1] == 0
