"""Near copies of source files: a licence that they share makes none, another one hides none, wherever they stand."""

from pathlib import Path

import numpy as np
import pytest

from refinery.transforms.core.document import Document
from refinery.transforms.dedup.deduplicate import DedupParams
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures
from tests.beam import make_document
from tests.transforms.dedup_parts import decide

CODE = SignatureParams(unit="code", permutations=112)
LICENCE = "".join(f" * {i} of the terms under which this may be used, copied and given away.\n" for i in range(60))
OTHER = "".join(f" * {i} another text, which asks for less and says so in other words.\n" for i in range(60))
OPENINGS = {
    "guard": "#ifndef {name}_H\n#define {name}_H\n",
    "condition": "#if !defined({name}_H)\n#define {name}_H\n",
    "once": "#pragma once\n",
    "php": "<?php\n",
    "script": "#!/usr/bin/env php\n<?php\n",
    "encoding": "# -*- coding: utf-8 -*-\n",
    "nothing": "",
}


def body(name: str, count: int = 12) -> str:
    return "".join(f"int {name}_{i}(struct {name} *p, int v{i * i});\n" for i in range(count))


def file_of(opening: str, licence: str, name: str, text: str) -> Document:
    """A file, whose name comes first among those of equal rank where it is earlier in the alphabet."""
    head = OPENINGS[opening].format(name=name.upper())
    return make_document(f"{head}/*\n{licence} */\n\n{text}", f"{name}@0", source="web")


def signed(docs: list[Document]) -> np.ndarray:
    return compute_signatures([doc.text for doc in docs], CODE)


def removed(folder: Path, docs: list[Document]) -> set[str]:
    params = DedupParams(near=NearParams(threshold=0.7, bands=14, rows=8, verify="signature"))
    verdicts = decide(folder, docs, params, parts=1, sign=signed)
    return {origin for origin, verdict in verdicts.items() if verdict["removed"]}


@pytest.mark.parametrize("opening", OPENINGS)
def test_files_that_share_only_their_licence_stay(tmp_path: Path, opening: str) -> None:
    docs = [file_of(opening, LICENCE, name, body(name)) for name in ("alpha", "beta", "gamma")]
    assert removed(tmp_path, docs) == set()


@pytest.mark.parametrize("opening", OPENINGS)
def test_copies_under_another_head_go(tmp_path: Path, opening: str) -> None:
    text = body("same")
    docs = [file_of(opening, LICENCE, "alpha", text), file_of("guard", OTHER, "beta", text)]
    assert len(removed(tmp_path, docs)) == 1
