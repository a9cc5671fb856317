"""What `refinery trace`, `show` and `sample` open and read in a corpus of many shards: files and bytes, counted.

    python benchmarks/trace_shards.py [--shards 10000]

It makes a corpus of that many small shards (some four documents each) in a temporary folder, asks for documents in
every way, and prints for each question the files opened, the bytes read and the seconds of a warm process.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

sys.path.insert(0, str(Path(__file__).parents[1]))

from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.corpus.show.draw import draw_kept
from refinery.pipelines.corpus.show.texts import Texts
from refinery.pipelines.corpus.trace.answers import Kept, Query
from refinery.pipelines.corpus.trace.trace_documents import trace
from tests.many_shards import build_many

DOCUMENTS = 5  # for each shard; a quarter of them would be of the validation split


class Counted:
    """Files that a store opened, bytes that were read of each, and in how many reads of all."""

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        self.requests = 0

    @property
    def files(self) -> set[str]:
        """Names of those that were opened."""
        return set(self.sizes)

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return self.sizes.total()


class CountedStream:
    """A stream whose reads are counted."""

    def __init__(self, stream: BinaryIO, counted: Counted, name: str) -> None:
        self.stream, self.counted, self.name = stream, counted, name

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.counted.sizes[self.name] += len(data)
        self.counted.requests += 1
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __enter__(self) -> "CountedStream":
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()


@contextmanager
def counting() -> Any:
    """Count what local stores open."""
    counted, real = Counted(), LocalStore.open

    def spy(store: LocalStore, name: str) -> Any:
        counted.sizes[name] += 0
        return CountedStream(real(store, name), counted, name)

    LocalStore.open = spy  # type: ignore[assignment, method-assign]
    try:
        yield counted
    finally:
        LocalStore.open = real  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=10_000, help="of the train split")
    shards = parser.parse_args().shards
    with TemporaryDirectory(prefix="refinery-trace-") as folder:
        measure(str(build_many(Path(folder) / "corpus", shards, DOCUMENTS * shards)), shards)


def measure(root: str, shards: int) -> None:
    """Print a row of a table for each question."""
    corpus = Corpus(root)
    drawn = next(draw_kept(corpus, 1, 1))
    print(
        f"{shards:,} shards, {corpus.manifest.totals['documents']:,} documents, a manifest of "
        f"{corpus.manifest_bytes:,} bytes\n"
    )
    print("| question | files opened | bytes read, the manifest's left out | seconds |\n| --- | --- | --- | --- |")

    def ask(*queries: Query) -> Callable[[], object]:
        return lambda: trace(root, queries)

    def show() -> object:
        texts = Texts(root)
        (_, answer), *_ = trace(root, [Query("id", drawn.doc.id)], corpus=texts.corpus).answers
        return texts.kept(answer) if isinstance(answer, Kept) else None

    def sample() -> object:
        texts = Texts(root)
        return [texts.kept(kept).text for kept in draw_kept(texts.corpus, 20, 0)]

    token = Query("token", f"{drawn.shard}:{drawn.token_offset + 3}")
    text = Texts(root).kept(drawn).text
    for name, question in (
        ("`trace --id`", ask(Query("id", drawn.doc.id))),
        ("`trace --token`", ask(token)),
        ("`trace --text`, no document has it", ask(Query("text", text))),
        ("`show --id`", show),
        ("`sample -n 20`", sample),
        ("`trace --url`", ask(Query("url", "https://nowhere.example/"))),
    ):
        start = time.perf_counter()
        with counting() as counted:
            question()
        seconds, read = time.perf_counter() - start, counted.bytes - corpus.manifest_bytes
        print(f"| {name} | {len(counted.files):,} | {max(read, 0):,} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
