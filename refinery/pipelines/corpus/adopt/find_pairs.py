"""The pairs of .bin and .idx that a command names: by either file, by their common name, or by a folder of them."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from refinery.loader.format.manifest import check_domain
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store

_DOMAIN = re.compile(r"([a-z0-9][a-z0-9_.-]{0,63})=(.+)")


@dataclass(frozen=True)
class Pair:
    """Two files of a split and domain. name: of both, without suffix, below the store's root."""

    split: str
    domain: str
    store: Store
    name: str

    @property
    def url(self) -> str:
        return self.store.url(self.name)


def place_of(location: str) -> str:
    """A location in a form that can be compared: absolute, without a trailing slash; links stay."""
    return location.rstrip("/") if "://" in location else os.path.abspath(location)


def find_pairs(words: Sequence[str], split: str, domain: str) -> list[Pair]:
    """The pairs of [DOMAIN=]LOCATION words, in their order, those of a folder by name. domain: where none is named.

    Raises ValueError for an address on the web, a location without pairs, and a file without its other.
    """
    found = []
    for word in words:
        match = _DOMAIN.fullmatch(word)
        name, location = match.groups() if match else (domain, word)
        if location.startswith(("http://", "https://")):
            raise ValueError(f"{location}: a web server given, local files, gs:// or s3:// are allowed")
        found += _pairs_at(location, split, check_domain(name))
    return found


def _pairs_at(location: str, split: str, domain: str) -> list[Pair]:
    place = place_of(location)
    base = place.removesuffix(".bin").removesuffix(".idx")
    parent, _, name = base.rpartition("/")
    if name and not parent.endswith((":/", ":")):
        store = open_store(parent or "/")
        if any(store.size(name + suffix) is not None for suffix in (".bin", ".idx")):
            return [_complete(Pair(split, domain, store, name))]
    if base != place:
        raise ValueError(f"{location}: there is no such file")
    store = open_store(place)
    names = {path[:-4] for path in store.list() if path.endswith((".bin", ".idx"))}
    if not names:
        raise ValueError(f"{location}: no .bin and .idx there, neither of that name nor in a folder of that name")
    return [_complete(Pair(split, domain, store, name)) for name in sorted(names)]


def _complete(pair: Pair) -> Pair:
    for suffix in (".bin", ".idx"):
        if pair.store.size(pair.name + suffix) is None:
            raise ValueError(f"{pair.url}{suffix}: missing: .bin and .idx are needed, side by side")
    return pair
