"""A corpus that is checked: opened, listed in pieces, and judged when these are checked, whoever checks them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest, load_manifest
from refinery.loader.format.shard_list import as_shards
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.checks.file_checks import check_file, collect
from refinery.pipelines.recipe.writers import find_writer
from refinery.pipelines.verify.before import Before
from refinery.pipelines.verify.joins import Found
from refinery.pipelines.verify.keyed_rows import partitions_for
from refinery.pipelines.verify.partials import identity
from refinery.pipelines.verify.pieces import Finding, Piece, Question, list_pieces
from refinery.pipelines.verify.whole import Report, Whole
from refinery.transforms.core.stage import Writer

Opened = tuple[Store, Manifest, bytes]  # and the manifest's sealed bytes
Checked = tuple[Sequence[Finding], Found]  # of every piece, and of what is joined


@dataclass(frozen=True)
class Corpus:
    """sealed: the manifest's bytes. question: with partitions for the rows that this corpus leaves. before: the version
    before, where that is asked for."""

    store: Store
    manifest: Manifest
    sealed: bytes
    question: Question
    before: Before | None
    pieces: Sequence[Piece]

    @property
    def identity(self) -> dict[str, Any]:
        """What all partial results of this check agree on."""
        return identity(self.question, self.sealed, self.pieces)

    @property
    def size(self) -> int:
        """Bytes of its files."""
        manifest = self.manifest
        return as_shards(manifest.shards).all_files()[1] + sum(e.size for e in (*manifest.files, *manifest.listings))


def open_corpus(question: Question) -> Corpus:
    """Raises ValueError for a prefix that is no corpus, or has not all of its listings."""
    store = open_store(question.prefix)
    manifest, sealed = load_manifest(store)
    manifest.load()
    return _in_pieces(question, (store, manifest, sealed))


def _in_pieces(question: Question, opened: Opened) -> Corpus:
    store, manifest, _ = opened
    before = Before(store, manifest, question.against) if question.against else None
    question = replace(question, partitions=partitions_for(_rows(manifest)), writer=_text_writer(manifest))
    return Corpus(*opened, question, before, list_pieces(store, manifest, before))


def _text_writer(manifest: Manifest) -> Writer | None:
    """What reads the texts of the corpus back; None in one of tokens, and where it is not known here."""
    try:
        return None if manifest.has_tokens else find_writer(manifest)
    except FormatError:  # the check of the manifest says so
        return None


def _rows(manifest: Manifest) -> int:
    """Rows that the pieces leave to be joined, by what the manifest says."""
    removed = sum(file.rows or 0 for file in manifest.removals)
    rows = sum(run.documents for run in as_shards(manifest.shards).runs) + 2 * removed
    if manifest.takedowns:  # all of them once more, and what went or came back
        rows = 2 * rows - removed + sum(each.documents + each.added_documents for each in manifest.takedowns)
    return rows


def report_on(question: Question, check: Callable[[Corpus], Checked], raises: bool = False) -> Report:
    """The report on a corpus. check: what was found in its pieces, and what is joined of them. raises: as
    `open_corpus`, where there is no corpus; otherwise that is a failure."""
    start = time.perf_counter()
    report = Report(question.prefix)
    for corpus in [open_corpus(question)] if raises else _open_if_whole(question, report.failures):
        findings, joined = check(corpus)
        whole = Whole(corpus.store, corpus.manifest, corpus.pieces, findings, joined, corpus.before)
        report.failures += collect(question.prefix, whole.judge(report))
    report.seconds = time.perf_counter() - start
    return report


def _open_if_whole(question: Question, failures: list[str]) -> list[Corpus]:
    """The corpus, its listings checked and loaded; none where `failures` gets why not."""
    opened: list[Opened] = []
    failures += collect(question.prefix, _open(question.prefix, opened))
    return [_in_pieces(question, each) for each in opened]


def _open(prefix: str, opened: list[Opened]) -> Iterator[str]:
    try:
        store = open_store(prefix)
        manifest, sealed = load_manifest(store)
    except ValueError as error:  # FormatError, or an unsupported kind of address
        yield str(error)
        return
    if broken := [failure for entry in manifest.listings for failure in collect(entry.path, check_file(store, entry))]:
        yield from broken
        return
    try:
        manifest.load()
    except ValueError as error:
        yield str(error)
        return
    opened.append((store, manifest, sealed))
