"""Every pass of ours keeps what `refinery.testing.CutTests` asks, and passes that do not are found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from refinery.testing import CutTests
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.dedup.chunk_copies.cut import CHUNK_COPIES, ChunkCopyParams
from refinery.transforms.dedup.cut_lines import LINES, LineParams, cut_lines, hash_lines
from refinery.transforms.dedup.cut_substrings import SUBSTRINGS, SubstringParams
from refinery.transforms.dedup.cutting_pass import CuttingPass, Hashed, HashedColumn
from refinery.transforms.dedup.signatures import SignatureParams

SHARED = "This line is on all pages of the site"
PASSAGE = " ".join(f"shared{at}" for at in range(60))


class TestLines(CutTests):
    cutting = LINES

    def texts(self) -> Sequence[str]:
        return [f"{SHARED}\nPage {at} says something else\n{SHARED.upper()}!" for at in range(12)]

    def params(self) -> Any:
        return LineParams(max_documents=5, min_chars=1)


class TestSubstrings(CutTests):
    cutting = SUBSTRINGS

    def texts(self) -> Sequence[str]:
        return [f"Page {at} begins.\n{PASSAGE}\nPage {at} ends." for at in range(6)]

    def params(self) -> Any:
        return SubstringParams(min_chars=1)


class TestChunkCopies(CutTests):
    cutting = CHUNK_COPIES

    def texts(self) -> Sequence[str]:
        shared = "int most(int a, int b)\n{\n    return a > b ? a : b;\n}\n"
        return [f"int own_{at} = {at};\n\n{shared}" for at in range(6)]

    def params(self) -> Any:
        return ChunkCopyParams(min_tokens=10, min_chars=1)

    def documents(self) -> list[Document]:
        return [replace(doc, meta={"path": "a.c"}) for doc in super().documents()]


def by_batch(docs: Sequence[Document], signature: SignatureParams) -> Any:
    """Hashes of lines that know how many documents are beside."""
    return hash_lines([f"{doc.text}\n{len(docs)} documents" for doc in docs])


def keeps_the_note(doc: Document, params: LineParams) -> Document | Drop:
    answer = cut_lines(doc, params)
    return answer if isinstance(answer, Drop) else replace(answer, meta=doc.meta)


def cuts_nothing(doc: Document, params: LineParams) -> Document | Drop:
    answer = cut_lines(doc, params)
    return answer if isinstance(answer, Drop) else replace(answer, text=doc.text)


def cuts_always(doc: Document, params: LineParams) -> Document | Drop:
    answer = cut_lines(doc, params)
    return answer if isinstance(answer, Drop) else replace(answer, text=answer.text[:-1])


def drops_all(doc: Document, params: LineParams) -> Document | Drop:
    return Drop("too-little-left") if "cut_lines" in doc.meta else doc


def hashed(make: Any) -> Hashed:
    return replace(LINES.hashed, columns=(HashedColumn("lines", LINES.hashed.columns[0].type, make),))


KEPT = "test_what_is_kept_has_lost_what_was_found"
BROKEN: dict[str, tuple[CuttingPass[Any], str, str]] = {
    "a column that depends on others": (
        replace(LINES, hashed=hashed(by_batch)),
        "test_columns_do_not_depend_on_the_batch",
        "column lines: .* alone has",
    ),
    "a note that stays": (replace(LINES, judge=keeps_the_note), KEPT, "the note 'cut_lines' is left"),
    "nothing cut": (replace(LINES, judge=cuts_nothing), KEPT, "nothing is cut"),
    "too much cut": (replace(LINES, judge=cuts_always), KEPT, "has no note, and .* is made of it"),
    "nothing kept": (replace(LINES, judge=drops_all), KEPT, "is dropped; give `params` that keep one"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name: str) -> None:
    cutting, test, message = BROKEN[name]
    broken = type("Broken", (TestLines,), {"cutting": cutting, "__test__": False})()
    with pytest.raises(AssertionError, match=message):
        getattr(broken, test)()


def test_texts_that_share_nothing_are_found() -> None:
    alone = type("Alone", (TestLines,), {"texts": lambda self: ["one line", "another one"], "__test__": False})()
    with pytest.raises(AssertionError, match="nothing is found in the texts"):
        alone.test_what_is_found_does_not_depend_on_how_documents_are_stored()
