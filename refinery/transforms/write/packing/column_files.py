"""The columns of a shard's tokens as files, so packing reads them in any order without holding a shard of them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from refinery.loader.format.packed import STRUCTURE, PackedFormat
from refinery.loader.read.loss_runs import COLUMN, mask_of
from refinery.transforms.tokenize.token_columns import chunk_borders, read_columns


def write_columns(
    documents: Iterable[bytes], lengths: Sequence[int], layout: PackedFormat, folder: Path
) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[int, Sequence[int]]]:
    """Structure columns of all tokens, one document behind the other, as memory maps of new files in `folder`; and for
    every document that is longer than a row, the tokens that it is best cut at.

    documents: their columns, of `token_columns`, b"" for none; lengths: their tokens, with BOS and EOS. Cost: 15 ns and
    17 bytes on disk a token; memory of a document.
    """
    borders = {}
    paths = {name: folder / f"{name}.column" for name in layout.structure}
    with ExitStack() as stack:
        files = {name: stack.enter_context(path.open("wb")) for name, path in paths.items()}
        for number, (columns, length) in enumerate(zip(documents, lengths, strict=True)):
            found = read_columns(columns, length)
            for name, file in files.items():
                file.write(found[name].data)
            if columns and length > layout.length:
                borders[number] = chunk_borders(columns)
    tokens = sum(lengths)
    maps = {
        name: np.memmap(path, STRUCTURE[name], "r") if tokens else np.empty(0, STRUCTURE[name])
        for name, path in paths.items()
    }
    return maps, borders


def write_trained(metas: Iterable[bytes | str], lengths: Sequence[int], folder: Path) -> npt.NDArray[np.bool_]:
    """Which of all tokens are trained, one document behind the other, as a memory map of a new file in `folder`.

    metas: the notes of each document, as JSON. Cost: a byte on disk for each token; memory of a document. Raises
    FormatError for notes that do not fit.
    """
    path = folder / "trained.column"
    with path.open("wb") as file:
        for number, (meta, length) in enumerate(zip(metas, lengths, strict=True)):
            file.write(mask_of(str(orjson.loads(meta).get(COLUMN, "")), length, f"document {number}").data)
    return np.memmap(path, np.bool_, "r") if sum(lengths) else np.empty(0, np.bool_)
