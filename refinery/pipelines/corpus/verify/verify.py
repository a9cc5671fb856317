"""Check a published corpus completely, and name everything that is wrong with it.

Every byte of every listed file is read once, every token is checked, and a sample of the documents is decoded. Checks
are generators of failures, so a broken file does not hide failures of others. Pieces are checked alone, by any
number of processes; then what they left is joined, and the whole is judged.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.file_checks import SCRATCH
from refinery.pipelines.corpus.verify.corpus import Checked, CheckedCorpus, open_corpus, report_on
from refinery.pipelines.corpus.verify.keyed_rows import Tables
from refinery.pipelines.corpus.verify.partials import Share, check_runs, find_partial, read_partials, write_partial
from refinery.pipelines.corpus.verify.pieces import SAMPLES, UNCOUNTED, Question
from refinery.pipelines.corpus.verify.processes import Processes
from refinery.pipelines.corpus.verify.whole import Report
from refinery.pipelines.progress.work import Work
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer import Tokenizer

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
    """Check the corpus at `prefix` (a local folder, gs:// or s3://). Never raises for what it finds there.

    samples: documents decoded per shard, chosen by hash. decode: False leaves decoding out. load: loads a tokenizer
    from the path of its file. work: learns what there is to read. against: the version before a takedown. workers:
    processes, which start for corpora of `worth` bytes or more; the report is the same with any number. Raises
    RefineError where one of them is killed.

    Cost: one read of every file; with `against` one more of the shards that the takedown rewrote, in both versions.
    Memory of each process: a few chunks of 8 MiB, the index of a shard and 100 bytes for
    each of its documents, the rows of a partition (400 MB). Disk, in the folder for temporary files: 24 bytes per
    document (56 where `url_dup` is on), and 90 per removed one.
    """

    def check(corpus: CheckedCorpus) -> Checked:
        (work or Work()).expect(corpus.size)
        processes = Processes(corpus.question, workers if corpus.size >= worth else 1)
        with TemporaryDirectory(prefix=SCRATCH) as folder, processes:
            findings, runs = processes.check(corpus.pieces, Path(folder))
            return findings, processes.join(Tables(open_store(folder), corpus.question.partitions, runs), Path(folder))

    return report_on(Question(prefix, samples if decode else 0, load, against), check)


def verify_share(
    prefix: str,
    share: Share,
    partials: str,
    *,
    samples: int = SAMPLES,
    load: Callable[[str], Tokenizer] = load_tokenizer,
    against: str = "",
    work: Work | None = None,
    workers: int = 1,
    worth: int = WORTH,
) -> int:
    """Check a share of the corpus' pieces, and write what was found to `partials`, a folder, gs://… or s3://…, unless
    it is there. -> failures in it.

    The same arguments for every share, except `workers`. Raises ValueError for a prefix that is not a corpus, or for
    partial results of another check. Cost: as `verify`, of the share.
    """
    corpus, place = open_corpus(Question(prefix, samples, load, against)), open_store(partials)
    asked = corpus.identity
    found = find_partial(place, share, asked)
    if found is None:
        own = share.of(corpus.pieces)
        size = sum(piece.size for piece in own if piece.kind not in UNCOUNTED)  # as is counted
        (work or Work()).expect(size)
        processes = Processes(corpus.question, workers if size >= worth else 1)
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

    def check(corpus: CheckedCorpus) -> Checked:
        place, partitions = open_store(partials), corpus.question.partitions
        compared = f" --against {against}" if against else ""
        again = f"`refinery verify {prefix}{compared} --partial {partials} --shards `"
        findings, runs = read_partials(place, corpus.identity, corpus.pieces, again)
        check_runs(place, runs, partitions)
        processes = Processes(corpus.question, workers if len(runs) > 1 else 1)
        with TemporaryDirectory(prefix=SCRATCH) as folder, processes:
            return findings, processes.join(Tables(place, partitions, runs), Path(folder))

    return report_on(Question(prefix, samples, load, against), check, raises=True)
