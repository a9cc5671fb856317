"""A view: a mixture of the documents of published corpora, as a manifest and a selection, without tokens of its own.

docs/format.md is the specification. manifest.json names the corpora by location and by the SHA-256 of their manifests,
and the view's domains with what each delivers in an epoch; selection.bin (refinery.loader.format.selection) names the
documents. A view that takes whole domains, each so many times, has no selection.bin.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import Fields
from refinery.loader.format.manifest import (
    MANIFEST,
    MAX_MANIFEST,
    SPLITS,
    VIEW_KIND,
    FileEntry,
    check_domain,
    check_version,
    file_entry,
    unseal,
)
from refinery.loader.format.selection import SELECTION
from refinery.loader.storage.store import Store

MOST_TURNS = 1000  # times that a document may be in a view: a view's segments are as many as its shards x turns
MOST_CORPORA = 1000

EARLIER = "earlier"  # folder of a view that was made again


@dataclass(frozen=True, slots=True)
class CorpusLink:
    """A corpus of a view. location: as `resolve` takes it. manifest_sha256: of the bytes of its manifest.json."""

    name: str
    location: str
    manifest_sha256: str


@dataclass(frozen=True, slots=True)
class ViewSplit:
    """What an epoch of a domain delivers. documents, tokens: copies counted. times: (times, documents, tokens) for each
    number of times that a document is delivered, copies not counted; times ascend from 1."""

    documents: int
    tokens: int
    times: tuple[tuple[int, int, int], ...]

    @property
    def turns(self) -> int:
        return self.times[-1][0] if self.times else 0


@dataclass(frozen=True, slots=True)
class ViewDomain:
    """A domain of a view. parts: (corpus, its domain) that its documents are of. splits: by name."""

    name: str
    parts: tuple[tuple[int, str], ...]
    splits: Mapping[str, ViewSplit]


@dataclass(frozen=True, slots=True)
class View:
    """manifest.json of a view. selection: None if each document of a domain is delivered equally often.

    mixing: keys of MixParams, None for none. recipe: what it was made of. plan: what its targets and caps came to.
    previous: sha256 of the manifests of the views that it was made again of, the oldest first, for later versions of
    their corpora; they are below `earlier_folder`.
    """

    name: str
    corpora: tuple[CorpusLink, ...]
    domains: tuple[ViewDomain, ...]
    selection: FileEntry | None
    mixing: Mapping[str, Any] | None
    totals: Mapping[str, int]
    recipe: Mapping[str, Any]
    plan: Mapping[str, Any]
    previous: tuple[str, ...] = ()


def is_view(data: bytes) -> bool:
    """Whether a manifest's bytes are those of a view; without a check of anything else."""
    return f'\n "kind": "{VIEW_KIND}",\n'.encode() in data


def read_view(store: Store) -> tuple[View, bytes]:
    """The view at `store`, and its manifest's bytes. Raises FormatError if it is none."""
    what = store.url(MANIFEST)
    try:
        data = store.read(MANIFEST, 0, MAX_MANIFEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(f"{store.root} is not a view: {MANIFEST} is missing; `refinery mix` writes it last") from None
    return parse_view(data, what), data


def parse_view(data: bytes, what: str = MANIFEST) -> View:
    """The view in sealed bytes. Raises FormatError for a broken seal, another kind or version, an invalid field, and
    sums that disagree."""
    payload = unseal(data, what)
    if payload.get("kind") != VIEW_KIND:
        raise FormatError(f"{what}: kind {payload.get('kind')!r:.80} found, {VIEW_KIND!r} expected")
    check_version(payload, what)
    top = Fields(payload, what)
    corpora = tuple(
        CorpusLink(e.text("name"), _location(e), e.checksum("manifest_sha256", 64)) for e in top.list("corpora")
    )
    if not 1 <= len(corpora) <= MOST_CORPORA:
        raise FormatError(f"{what}: {len(corpora)} corpora found, 1 to {MOST_CORPORA} expected")
    domains = tuple(_domain(entry, len(corpora)) for entry in top.list("domains"))
    names = [domain.name for domain in domains]
    if len(set(names)) != len(names) or not names:
        raise FormatError(f"{what}: domains: {', '.join(names)[:200] or 'none'} found, one or more names, each once")
    selection = None if payload.get("selection") is None else file_entry(top.inner("selection"))
    if selection is not None and selection.path != SELECTION:
        raise FormatError(f"{what}: selection is {selection.path!r:.80}, {SELECTION!r} expected")
    totals = {key: top.inner("totals").count(key) for key in ("documents", "tokens")}
    for key, found in totals.items():
        expected = sum(getattr(split, key) for domain in domains for split in domain.splits.values())
        if found != expected:
            raise FormatError(f"{what}: totals: {key} is {found}, {expected} expected from the domains")
    mixing = None if payload.get("mixing") is None else top.inner("mixing").value
    recipe, plan = top.inner("recipe").value, top.inner("plan").value
    previous = tuple(payload.get("previous", ()))
    if not all(isinstance(each, str) and re.fullmatch("[0-9a-f]{64}", each) for each in previous):
        raise FormatError(f"{what}: previous: {previous!r:.80} found, SHA-256 sums expected")
    return View(top.text("name"), corpora, domains, selection, mixing, totals, recipe, plan, previous)


def earlier_folder(root: str, sha256: str) -> str:
    """Where the view at `root` keeps an earlier one.

    >>> earlier_folder("views/half", "0a" * 32)[:20]
    'views/half/earlier/0'
    """
    return f"{root}/{EARLIER}/{sha256}"


def _location(entry: Fields) -> str:
    found = entry.text("location")
    if not found or "\0" in found or len(found) > 4096:
        raise FormatError(f"{entry.where}: location is {found!r:.80}, a folder or an address expected")
    return found


def _domain(entry: Fields, corpora: int) -> ViewDomain:
    name = entry.text("name")
    try:
        check_domain(name)
    except ValueError as error:
        raise FormatError(f"{entry.where}: {error}") from None
    parts = tuple((part.count("corpus", corpora - 1), part.text("domain")) for part in entry.list("parts"))
    if list(parts) != sorted(set(parts)):
        raise FormatError(f"{entry.where}: parts are not in order, or one of them twice")
    splits = entry.inner("splits")
    if unknown := sorted(set(splits.value) - set(SPLITS)):
        raise FormatError(f"{entry.where}: split {unknown[0]!r:.80} found, {' or '.join(SPLITS)} expected")
    return ViewDomain(name, parts, {split: _split(splits.inner(split)) for split in SPLITS if split in splits.value})


def _split(entry: Fields) -> ViewSplit:
    times = tuple((e.count("times", MOST_TURNS), e.count("documents"), e.count("tokens")) for e in entry.list("times"))
    if [row[0] for row in times] != sorted({row[0] for row in times} - {0}):
        raise FormatError(f"{entry.where}: times are not 1 or more and ascending")
    found = ViewSplit(entry.count("documents"), entry.count("tokens"), times)
    for key, value, i in (("documents", found.documents, 1), ("tokens", found.tokens, 2)):
        expected = sum(row[0] * row[i] for row in times)
        if value != expected:
            raise FormatError(f"{entry.where}: {key} is {value}, {expected} expected from `times`")
    return found


def resolve(location: str, view: str) -> str:
    """Where a corpus is that a view at `view` names: a relative location begins at the view's own folder.

    >>> resolve("../web", "gs://bucket/views/half"), resolve("/data/web", "/views/half")
    ('gs://bucket/views/web', '/data/web')
    """
    if "://" in location or location.startswith("/"):
        return location
    scheme, separator, path = view.partition("://") if "://" in view else ("", "", view)
    if not separator:
        return os.path.normpath(os.path.join(path, location))
    host, _, folder = path.rstrip("/").partition("/")
    parts = folder.split("/") if folder else []
    for part in location.split("/"):
        if part == "..":
            if not parts:
                raise FormatError(f"{view}: its corpus {location!r:.80} is outside of {scheme}://{host}")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return f"{scheme}://{'/'.join([host, *parts])}"


def relative(location: str, view: str) -> str:
    """A corpus' location as a view at `view` names it: relative where both are on the same disk, bucket or host.

    >>> relative("gs://bucket/web", "gs://bucket/views/half"), relative("gs://bucket/web", "/views/half")
    ('../../web', 'gs://bucket/web')
    """
    if "://" not in location and "://" not in view:
        return os.path.relpath(os.path.abspath(location), os.path.abspath(view))
    if "://" in location and "://" in view:
        (here, path), (there, other) = (_host_and_path(url) for url in (location, view))
        if here == there:
            return os.path.relpath(PurePosixPath("/", path), PurePosixPath("/", other))
    return location if "://" in location else os.path.abspath(location)


def _host_and_path(url: str) -> tuple[str, str]:
    found = re.fullmatch(r"([a-z]+://[^/]*)/?(.*)", url)
    return (found[1], found[2].rstrip("/")) if found else (url, "")
