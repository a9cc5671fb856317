"""Texts that break deduplication where it is careless: the right verdicts, in both ways of verifying."""

import hashlib
import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from refinery.transforms.core.document import Document, hash64
from refinery.transforms.dedup.deduplicate import DedupParams
from refinery.transforms.dedup.near_duplicates import BUCKET_REPRESENTATIVES, NearParams, band_hashes, sketches
from refinery.transforms.dedup.propose_chunks import CHUNK_MEMBERS
from refinery.transforms.dedup.verify_similarity import COMPONENT_REPRESENTATIVES
from tests.beam import make_document
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled, scaled
from tests.transforms.dedup_oracle import SIGNATURE
from tests.transforms.dedup_parts import decide

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

VERIFY = ["signature", "exact"]
IDENTICAL = scaled(50_000, 9_000)
CROWD = scaled(10_000, 5_000)
LARGEST = scaled(1_111_111, 333_333)  # words of nine bytes: 10 MB is the limit of a document

HAN = "".join(chr(0x4E00 + i * 97 % 20000) for i in range(150))
KANA = "".join(chr(0x3042 + i * 7 % 80) for i in range(150))
THAI = "".join(chr(0x0E01 + i * 11 % 46) for i in range(150))
MIXED = "".join(f"{HAN[i]}{THAI[i]}naïve{i}{KANA[i]}кириллица{i}한{i}" for i in range(40))
HINDI = " ".join(f"क{chr(0x0915 + i % 30)}्षि{i}" for i in range(80))

# Texts of a kind in rank order, and of each the number of the text that stands in its place; None where it survives.
SMALL: dict[str, list[tuple[str, int | None]]] = {
    "nothing": [("", None), ("", 0), (" ", 0), ("\n\t ", 0), ("\u2003", 0)],
    "one word": [("word", None), ("Word!", 0), ("word", 0), ("word word", None), ("sword", None), ("(WORD) word", 3)],
    "lone punctuation": [
        ("?", None),
        ("!", None),
        ("?!", None),
        ("…", None),
        ("...", None),
        ("?", 0),
        ("\u0301", None),
    ],
    "one word over and over": [
        ("spam " * 1_000_000, None),
        ("spam " * 5, 0),
        ("Spam, " * 77, 0),
        ("spam " * 4, None),
        ("eggs " * 1_000_000, None),
        ("spam " * 1_000_000 + "eggs", None),
    ],
    "no spaces": [(HAN, None), (HAN[:-1] + "。", 0), (HAN[::-1], None), (KANA, None), (KANA + "あ", 3), (THAI, None)],
    "mixed scripts": [(MIXED, None), (MIXED.replace("naïve20", "naive20"), 0), (HINDI, None), (HINDI + " क", 2)],
    "one character": [("a", None), ("A", 0), ("\u4e00", None), ("\U0001f600", None), ("\ufffd", None), ("7", None)],
    "long word": [("x" * 1_000_000, None), ("X" * 1_000_000, 0), ("x" * 999_999, None)],
    "no word, long": [("-" * 1_000_000, None), ("-" * 1_000_001, None)],
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("verify", VERIFY)
def test_small_and_strange_texts(tmp_path: Path, verify: str, exact: bool) -> None:
    docs, expected = [], []
    for kind, cases in SMALL.items():
        begin = len(docs)
        for number, (text, representative) in enumerate(cases):
            docs.append(make_document(text, f"{kind} {number}", source="web", position=number))
            if not exact and kind == "nothing" and number > 1:  # white space is some text, and not the same
                representative = None
            expected.append(None if representative is None else docs[begin + representative].id)
    verdicts = decide(tmp_path, docs, DedupParams(exact, NearParams(verify=verify)))
    found = {doc.origin: verdicts[doc.origin]["kept_id"] for doc in docs}
    assert found == {doc.origin: representative for doc, representative in zip(docs, expected, strict=True)}
    assert sum(row["copies"] for row in verdicts.values()) == len(docs)
    assert all(row["similarity"] > 0.9 for row in verdicts.values() if row["removed"])


@pytest.mark.parametrize("verify", VERIFY)
def test_documents_of_ten_megabytes(tmp_path: Path, verify: str) -> None:
    """Near copies of one, more text than is compared pair by pair; and one that shares half of it."""
    words = [f"{i * 2654435761 % 2**32:08x}" for i in range(LARGEST)]
    assert len(" ".join(words)) == 9 * LARGEST - 1
    texts = [" ".join(words), " ".join(words[::-1]), " ".join([*words[: len(words) // 2], *words[: len(words) // 2]])]
    for copy in range(3):
        changed = list(words)
        changed[copy::9973] = ["changed"] * len(changed[copy::9973])
        texts.append(" ".join(changed))
    docs = [make_document(text, f"o{i}", source="web", position=i) for i, text in enumerate(texts)]
    verdicts = decide(tmp_path, docs, DedupParams(near=NearParams(verify=verify)), parts=2, group=2)
    assert [verdicts[f"o{i}"]["kept_id"] for i in range(6)] == [None, None, None, *[docs[0].id] * 3]
    assert [verdicts[f"o{i}"]["copies"] for i in range(6)] == [4, 1, 1, 0, 0, 0]
    if verify == "exact":  # a changed word takes five shingles
        lost = 5 * len(words[::9973])
        similarity = (len(words) - lost) / (len(words) + lost)
        assert [verdicts[f"o{i}"]["similarity"] for i in (3, 4, 5)] == pytest.approx([similarity] * 3, abs=1e-3)


@pytest.mark.parametrize(
    ("verify", "exact"), sampled("identical documents", product(VERIFY, (True, False)), 2, lambda cell: cell)
)
def test_many_identical_documents(tmp_path: Path, verify: str, exact: bool) -> None:
    """Without exact removal they are one bucket in each band, one component, and far more than one chunk."""
    page = " ".join(f"w{i}" for i in range(60))
    docs = [make_document(page, f"o{i}", source="web", position=(i * 7919) % IDENTICAL) for i in range(IDENTICAL)]
    docs.append(make_document(page.replace("w0", "x0"), "copy", source="books", position=7))
    docs.append(make_document("another page, unlike them all", "other", source="web", position=9))
    verdicts = decide(tmp_path, docs, DedupParams(exact, NearParams(verify=verify)), group=5000)
    kept = {origin: (row["copies"], row["sources"]) for origin, row in verdicts.items() if not row["removed"]}
    assert kept == {"copy": (IDENTICAL + 1, ["books", "web"]), "other": (1, ["web"])}
    representatives = {row["kept_id"] for row in verdicts.values()}
    assert representatives == ({docs[0].id} if exact else set()) | {docs[-2].id, None}


def crowd(count: int, pairs: int) -> list[Document]:
    """Texts that have nothing in common, the last `pairs` of them followed by a near copy of each."""
    texts = [" ".join(f"d{number}w{i}" for i in range(40)) for number in range(count)]
    texts += [f"{text} end" for text in texts[-pairs:]]
    return [make_document(text, f"o{i}", source="web", position=i) for i, text in enumerate(texts)]


def sign_alike(docs: Sequence[Document]) -> NDArray[np.uint32]:
    """Made-up signatures: the first band is the same for all, the rest random; those of copies differ in 8 values."""
    rows = np.empty((len(docs), SIGNATURE.permutations), np.uint32)
    for row, doc in zip(rows, docs, strict=True):
        row[:] = np.frombuffer(hashlib.shake_128(doc.text.removesuffix(" end").encode()).digest(row.nbytes), np.uint32)
        row[:8] = 7
        if doc.text.endswith(" end"):
            row[random.Random(doc.origin).sample(range(8, 112), 8)] += np.uint32(1)
    return rows


def sketch_alike(docs: Sequence[Document]) -> NDArray[np.uint32]:
    """The same with values chosen so that all sketches are equal: a product below 2^28 has a sketch of zeros."""
    inverse = np.uint32(pow(0x9E3779B1, -1, 2**32))
    return (sign_alike(docs) >> np.uint32(4)) * inverse


SIGNED = {"one-bucket": sign_alike, "one-component": sketch_alike}


@pytest.mark.parametrize(("verify", "signed"), sampled("shared bands", product(VERIFY, SIGNED), 2, lambda cell: cell))
def test_thousands_of_documents_that_share_a_band_and_nothing_else(tmp_path: Path, signed: str, verify: str) -> None:
    """None is removed but the copies hidden at their end, far behind the representatives that everybody meets."""
    sign, docs = SIGNED[signed], crowd(CROWD, pairs=50)
    assert len(docs) > CHUNK_MEMBERS > COMPONENT_REPRESENTATIVES > BUCKET_REPRESENTATIVES
    signatures = sign(docs)
    assert len(np.unique(band_hashes(signatures, 14, 8)[:, 0])) == 1
    assert (len(np.unique(sketches(signatures), axis=0)) == 1) == (sign is sketch_alike)
    verdicts = decide(tmp_path, docs, DedupParams(near=NearParams(verify=verify)), sign=sign, group=1000)
    removed = {origin: row["kept_id"] for origin, row in verdicts.items() if row["removed"]}
    assert removed == {f"o{CROWD + i}": docs[CROWD - 50 + i].id for i in range(50)}


FAMILIES, MEMBERS = 30, 40


def sign_chains(docs: Sequence[Document]) -> NDArray[np.uint32]:
    """Made-up signatures: one band for all; of the other values a neighbour in the family has 12 of 13."""
    rows = np.full((len(docs), SIGNATURE.permutations), 7, np.uint32)
    for row, doc in zip(rows, docs, strict=True):
        family, place = (int(word) for word in doc.text.split()[:2])
        row[8:] = [hash64(family, value, (place + value) // 13) % 2**32 for value in range(8, len(row))]
    return rows


def test_chains_in_one_large_bucket_end_alike_in_any_layout(tmp_path: Path) -> None:
    """The only links are those of the bucket, and which documents lead in it depends on the order it is seen in."""
    texts = [f"{family} {place}" for family in range(FAMILIES) for place in range(MEMBERS)]
    docs = [make_document(text, f"o{i}", source="web", position=i % 3) for i, text in enumerate(texts)]
    params = DedupParams(near=NearParams(bands=1, rows=8, verify="signature"))
    first = decide(tmp_path / "first", docs, params, sign=sign_chains)
    for method, parts, partitions in (("forest", 1, 1), ("contraction", 7, 2), ("forest", 40, 5)):
        folder = tmp_path / str(parts)
        assert decide(folder, docs, params, method, parts, partitions, sign=sign_chains) == first

    signatures = sign_chains(docs)
    number = {doc.id: i for i, doc in enumerate(docs)}
    removed = {i: number[row["kept_id"]] for i, doc in enumerate(docs) if (row := first[doc.origin])["removed"]}
    assert len(docs) * 0.6 < len(removed) < len(docs) - 2 * FAMILIES
    assert not removed.keys() & set(removed.values())
    assert min((signatures[i] == signatures[j]).mean() for i, j in removed.items()) >= 0.75
