"""Fingerprints of licences, from ScanCode's licence data: `python -m tools.known_licenses FOLDER`.

FOLDER is `licensedcode/data` of an installed scancode-toolkit-mini. The result is known_licenses.npz in
transforms/code/licences/: hashes of five consecutive words, without the texts. Taken are whole licences, notices and
references whose class is permissive, weak copyleft or GPL (which is known so that a file under a choice can be read);
nothing else is known.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from refinery.transforms.code.licences.license_cover import DATA, shingle_hashes, split_words
from refinery.transforms.code.licences.license_expressions import identifiers, licence_class
from refinery.transforms.code.licences.license_rules import PERMISSIVE, WEAK

ATTRIBUTION = (
    "Made from the licence data of ScanCode Toolkit {version}, Copyright (c) nexB Inc. and others, "
    "https://github.com/aboutcode-org/scancode-toolkit, under CC-BY-4.0 "
    "(https://creativecommons.org/licenses/by/4.0/). Changed: texts became hashes of five words."
)
KINDS = ("is_license_text", "is_license_notice", "is_license_reference", "is_license_tag")
GNU = re.compile(r"a?gpl-[123]\.0(?:-only|-or-later|\+)?")
_FRONT = re.compile(r"---\n(.*?)\n---\n?", re.DOTALL)
_KEY = re.compile(r"[A-Za-z0-9.+_-]+")


class Item(NamedTuple):
    """One licence or rule of the data. name: of its file. key: licence key or expression of keys, as ScanCode writes
    it. expression: the same with SPDX names. category: of a licence, "" of a rule. kind: one of KINDS."""

    name: str
    key: str
    expression: str
    category: str
    kind: str
    text: str


def _read(path: Path) -> tuple[dict[str, Any], str]:
    text = path.read_text("utf-8")
    front = _FRONT.match(text)
    if front is None:
        raise ValueError(f"{path}: no front matter")
    return yaml.load(front[1], Loader=yaml.CSafeLoader) or {}, text[front.end() :]


def items(folder: Path) -> Iterator[Item]:
    """The licences and rules of a data folder, in order of names; without those that are deprecated or false."""
    licences = [_read(path) for path in sorted((folder / "licenses").glob("*.LICENSE"))]
    spdx = {fact["key"]: fact.get("spdx_license_key") or f"LicenseRef-{fact['key']}" for fact, _ in licences}

    def expression(keys: str) -> str:
        return _KEY.sub(lambda m: m[0] if m[0] in ("AND", "OR", "WITH") else spdx.get(m[0], "LicenseRef-other"), keys)

    for fact, text in licences:
        if text.strip():
            key = fact["key"]
            yield Item(f"{key}.LICENSE", key, spdx[key], fact["category"], KINDS[0], text)
    for path in sorted((folder / "rules").glob("*.RULE")):
        fact, text = _read(path)
        kind = next((kind for kind in KINDS if fact.get(kind)), "")
        if kind and not fact.get("is_deprecated") and not fact.get("is_false_positive"):
            key = fact["license_expression"]
            yield Item(path.name, key, expression(key), "", kind, text.replace("{{", "").replace("}}", ""))


def is_taken(item: Item) -> bool:
    """Whether an item is known."""
    gnu = all(GNU.fullmatch(name) for name in identifiers(item.expression))
    return licence_class(item.expression) in (PERMISSIVE, WEAK) or (gnu and item.kind in KINDS[:2])


def pack(known: Iterator[Item], also: Callable[[Item], bool] = lambda _: True) -> dict[str, NDArray[Any]]:
    """The arrays of the data file. also: what else an item must be. The same for the same items."""
    names: dict[str, int] = {}
    expression: list[int] = []
    hashes: list[NDArray[np.uint32]] = []
    seen: set[bytes] = set()
    for item in known:
        if not is_taken(item) or not also(item):
            continue
        own = np.unique(shingle_hashes(split_words(item.text).words))
        if not len(own) or own.tobytes() in seen:
            continue
        seen.add(own.tobytes())
        hashes.append(own)
        expression.append(names.setdefault(item.expression, len(names)))
    every: NDArray[Any] = np.concatenate(hashes)
    text: NDArray[Any] = np.repeat(np.arange(len(hashes)), [len(own) for own in hashes])
    order = np.lexsort([text, every])
    distinct, counts = np.unique(every, return_counts=True)
    return {
        "hashes": distinct,
        "counts": counts.astype(np.uint16),
        "texts": text[order].astype(np.uint16),
        "expression": np.array(expression, np.uint16),
        "expressions": np.frombuffer("\n".join(names).encode(), np.uint8),
    }


def main(folder: str, version: str) -> None:
    """Write the data file."""
    packed = pack(items(Path(folder)))
    note = np.frombuffer(ATTRIBUTION.format(version=version).encode(), np.uint8)
    arrays: dict[str, Any] = {"attribution": note, **packed}
    np.savez_compressed(DATA, **arrays)
    print(
        f"{DATA.name}: {len(packed['expression'])} texts, {len(packed['hashes'])} hashes, {DATA.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
