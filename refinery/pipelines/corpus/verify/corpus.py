"""A corpus that is checked: opened, listed in pieces, and judged when these are checked, whoever checks them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.shard_list import as_shards
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.checks.file_checks import check_file, collect
from refinery.pipelines.corpus.verify.before import Before
from refinery.pipelines.corpus.verify.joins import Found
from refinery.pipelines.corpus.verify.keyed_rows import partitions_for
from refinery.pipelines.corpus.verify.partials import identity
from refinery.pipelines.corpus.verify.pieces import Finding, Piece, Question, list_pieces
from refinery.pipelines.corpus.verify.whole import Report, Whole
from refinery.pipelines.recipe.writers import find_writer
from refinery.transforms.core.stage import Writer

Checked = tuple[Sequence[Finding], Found]  # of every piece, and of what is joined


@dataclass(frozen=True)
class CheckedCorpus:
    """question: with partitions for the rows that this corpus leaves. before: the version before, where that is asked
    for."""

    corpus: Corpus
    question: Question
    before: Before | None
    pieces: Sequence[Piece]

    @property
    def identity(self) -> dict[str, Any]:
        """What all partial results of this check agree on."""
        return identity(self.question, self.corpus.sha256, self.pieces)

    @property
    def size(self) -> int:
        """Bytes of its files."""
        manifest = self.corpus.manifest
        return as_shards(manifest.shards).all_files()[1] + sum(e.size for e in (*manifest.files, *manifest.listings))


def open_corpus(question: Question) -> CheckedCorpus:
    """Raises ValueError for a prefix that is not a corpus, or has not all of its listings."""
    return _in_pieces(question, Corpus(question.prefix).load())


def _in_pieces(question: Question, corpus: Corpus) -> CheckedCorpus:
    store, manifest = corpus.store, corpus.manifest
    before = Before(store, manifest, question.against) if question.against else None
    question = replace(question, partitions=partitions_for(_rows(manifest)), writer=_text_writer(manifest))
    return CheckedCorpus(corpus, question, before, list_pieces(store, manifest, before))


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


def report_on(question: Question, check: Callable[[CheckedCorpus], Checked], raises: bool = False) -> Report:
    """The report on a corpus. check: what was found in its pieces, and what is joined of them. raises: as
    `open_corpus`, where there is no corpus; otherwise that is a failure."""
    start = time.perf_counter()
    report = Report(question.prefix)
    for checked in [open_corpus(question)] if raises else _open_if_whole(question, report.failures):
        findings, joined = check(checked)
        corpus = checked.corpus
        whole = Whole(corpus.store, corpus.manifest, checked.pieces, findings, joined, checked.before)
        report.failures += collect(question.prefix, whole.judge(report))
    report.seconds = time.perf_counter() - start
    return report


def _open_if_whole(question: Question, failures: list[str]) -> list[CheckedCorpus]:
    """The corpus, its listings checked and loaded; none where `failures` gets why not."""
    opened: list[Corpus] = []
    failures += collect(question.prefix, _open(question.prefix, opened))
    return [_in_pieces(question, each) for each in opened]


def _open(prefix: str, opened: list[Corpus]) -> Iterator[str]:
    try:
        corpus = Corpus(prefix)
    except ValueError as error:  # FormatError, or an unsupported kind of address
        yield str(error)
        return
    checks = ((entry.path, check_file(corpus.store, entry)) for entry in corpus.manifest.listings)
    if broken := [failure for path, check in checks for failure in collect(path, check)]:
        yield from broken
        return
    opened.append(corpus.load())
