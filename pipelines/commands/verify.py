"""Check a published corpus completely, and name everything that is wrong with it.

Every byte of every listed file is read once, every token is checked, and a sample of the documents is decoded. Checks
are generators of failures, so that a broken file does not hide failures of others. Pieces are checked alone, by any
number of processes; then what they left is joined, and the whole is judged.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from refinery.loader.format.manifest import Manifest, load_manifest, read_manifest
from refinery.loader.format.shard_list import as_shards
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.checks.file_checks import check_file, collect
from refinery.pipelines.progress.work import Work
from refinery.pipelines.verify.keyed_rows import Tables, partitions_for
from refinery.pipelines.verify.partials import Share, check_runs, find_partial, identity, read_partials, write_partial
from refinery.pipelines.verify.pieces import PART, SAMPLES, Question, list_pieces
from refinery.pipelines.verify.processes import Processes
from refinery.pipelines.verify.whole import Report, Whole
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer import Tokenizer

SCRATCH = "refinery-verify-"
WORTH = 1 << 30  # bytes of a corpus from which on other processes are started: these take a second or two each


def verify(
    prefix: str,
    *,
    samples: int = SAMPLES,
    decode: bool = True,
    load: Callable[[str], Tokenizer] = load_tokenizer,
    work: Work | None = None,
    against: str = "",
    workers: int = 1,
    worth: int = WORTH,
) -> Report:
    """Check the corpus at `prefix` (a local folder or gs://bucket/prefix). Never raises for what it finds there.

    samples: documents decoded per shard, chosen by hash. decode: False leaves decoding out. load: loads a tokenizer
    from the path of its file. work: learns what there is to read. against: the version before a takedown. workers:
    processes, which start for corpora of `worth` bytes or more; the report is the same with any number. Raises
    RefineError where one of them is killed.

    Cost: one read of every file. Memory of each process: a few chunks of 8 MiB, the index of a shard and 100 bytes for
    each of its documents, the rows of a partition (400 MB). Disk, in the folder for temporary files: 24 bytes per
    document (56 where `url_dup` is on), and 90 per removed one.
    """
    start = time.perf_counter()
    report = Report(prefix)
    opened: list[tuple[Store, Manifest]] = []
    report.failures += collect(prefix, open_corpus(prefix, opened))
    for store, manifest in opened:
        size = as_shards(manifest.shards).all_files()[1] + sum(e.size for e in (*manifest.files, *manifest.listings))
        (work or Work()).expect(size)
        question = question_of(prefix, manifest, samples if decode else 0, load)
        pieces = list_pieces(store, manifest)
        processes = Processes(question, workers if size >= worth else 1)
        with TemporaryDirectory(prefix=SCRATCH) as folder, processes:
            findings, runs = processes.check(pieces, Path(folder))
            joined = processes.join(Tables(open_store(folder), question.partitions, runs), Path(folder))
        whole = Whole(store, manifest, pieces, findings, joined, against)
        report.failures += collect(prefix, whole.judge(report))
    report.seconds = time.perf_counter() - start
    return report


def verify_share(
    prefix: str,
    share: Share,
    partials: str,
    *,
    samples: int = SAMPLES,
    load: Callable[[str], Tokenizer] = load_tokenizer,
    work: Work | None = None,
    workers: int = 1,
    worth: int = WORTH,
) -> int:
    """Check a share of the corpus' pieces, and write what was found to `partials`, a folder or gs://…, unless it is
    there. -> failures in it.

    The same arguments for every share, but for `workers`. Raises ValueError for a prefix that is no corpus, or for
    partial results of another check. Cost: as `verify`, of the share.
    """
    store = open_store(prefix)
    manifest, data = load_manifest(store)
    manifest.load()
    question, pieces = question_of(prefix, manifest, samples, load), list_pieces(store, manifest)
    asked, place = identity(question, data, pieces), open_store(partials)
    found = find_partial(place, share, asked)
    if found is None:
        own = share.of(pieces)
        size = sum(piece.size for piece in own if piece.kind != PART)  # as is counted
        (work or Work()).expect(size)
        processes = Processes(question, workers if size >= worth else 1)
        with TemporaryDirectory(prefix=SCRATCH) as folder, processes:
            found, runs = processes.check(own, Path(folder))
            write_partial(place, share, asked, found, runs, Path(folder))
    return sum(len(finding.failures) + len(finding.content) for finding in found)


def verify_merged(
    prefix: str,
    partials: str,
    *,
    samples: int = SAMPLES,
    load: Callable[[str], Tokenizer] = load_tokenizer,
    against: str = "",
    workers: int = 1,
) -> Report:
    """The report of `verify` from the partial results of all shares in `partials`.

    Raises ValueError where one is missing, damaged or of another check. Cost: two reads of the partial results, and of
    the corpus the small files alone; memory and disk as joining in `verify`.
    """
    start = time.perf_counter()
    report = Report(prefix)
    store = open_store(prefix)
    manifest, data = load_manifest(store)
    manifest.load()
    question, pieces = question_of(prefix, manifest, samples, load), list_pieces(store, manifest)
    place = open_store(partials)
    again = f"`refinery verify {prefix} --partial {partials} --shards `"
    findings, runs = read_partials(place, identity(question, data, pieces), pieces, again)
    check_runs(place, runs, question.partitions)
    with (
        TemporaryDirectory(prefix=SCRATCH) as folder,
        Processes(question, workers if len(runs) > 1 else 1) as processes,
    ):
        joined = processes.join(Tables(place, question.partitions, runs), Path(folder))
    whole = Whole(store, manifest, pieces, findings, joined, against)
    report.failures += collect(prefix, whole.judge(report))
    report.seconds = time.perf_counter() - start
    return report


def open_corpus(prefix: str, opened: list[tuple[Store, Manifest]]) -> Iterator[str]:
    """Adds the corpus to `opened`, its listings checked and loaded, or says why not."""
    try:
        store = open_store(prefix)
        opened.append((store, read_manifest(store)))
    except ValueError as error:  # FormatError, or an unsupported kind of address
        yield str(error)
        return
    store, manifest = opened[0]
    if broken := [failure for entry in manifest.listings for failure in collect(entry.path, check_file(store, entry))]:
        opened.clear()
        yield from broken
        return
    try:
        manifest.load()
    except ValueError as error:
        opened.clear()
        yield str(error)


def question_of(prefix: str, manifest: Manifest, samples: int, load: Callable[[str], Tokenizer]) -> Question:
    """What is asked of a corpus, with partitions of the rows that it leaves by what its manifest says."""
    removed = sum(file.rows or 0 for file in manifest.removals)
    rows = sum(run.documents for run in as_shards(manifest.shards).runs) + 2 * removed
    if manifest.takedowns:  # all of them once more, and what went or came back
        rows = 2 * rows - removed + sum(each.documents + each.added_documents for each in manifest.takedowns)
    return Question(prefix, samples, load, partitions_for(rows))
