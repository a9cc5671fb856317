"""A published corpus, view, export or adopted corpus as an object.

    import refinery.corpus

    corpus = refinery.corpus.open("out/web")
    for batch in corpus.documents(["id", "url", "text"], where="quality > 0.5 and language == 'en'"):
        ...  # a pyarrow.RecordBatch
    corpus.find(url="https://example.org/page")
    corpus.text("0f9c2e6a41d7b8350f9c2e6a41d7b835")

Batches are bounded, files are read when they are needed, and a damaged or forged file is an error that names it.
`refinery.loader` has what a training node needs of the same, without the pipeline's libraries.
"""

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.kinds import EXPORT, VIEW, kind_of
from refinery.pipelines.corpus.export.exported import ExportedCorpus
from refinery.pipelines.published.published import Found, Place, PublishedCorpus
from refinery.pipelines.published.scan import Say, silent
from refinery.pipelines.published.view import CorpusView

if TYPE_CHECKING:
    from refinery.transforms.core.stage import Writer

__all__ = ["CorpusView", "Documents", "ExportedCorpus", "Found", "Place", "PublishedCorpus", "open"]


@runtime_checkable
class Documents(Protocol):
    """What a corpus, an adopted corpus, a view and an export have in common. kind: "corpus", "adopted", "view" or
    "export". sha256: of manifest.json, which names this version of it."""

    sha256: str

    @property
    def kind(self) -> str: ...

    @property
    def root(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def store(self) -> Store: ...

    def documents(
        self, columns: Sequence[str] | None = None, where: str = "", split: str = "", domain: str = ""
    ) -> Iterator[pa.RecordBatch]: ...

    def find(self, url: str | None = None, origin: str | None = None, id: str | bytes | None = None) -> list[Found]: ...

    def text(self, id: str | bytes, /) -> str: ...


def open(
    location: str | PathLike[str], say: Say = silent, writer: "Writer | None" = None
) -> PublishedCorpus | CorpusView | ExportedCorpus:
    """What is published at a local folder, gs://bucket/prefix, s3://bucket/prefix or https://host/prefix.

    say: receives progress lines of a long search. writer: of a corpus of texts, where it is neither ours nor offered
    by an installed package. Code that a corpus names is not imported.

    Opening reads manifest.json, of a view also its selection and the manifests of its corpora. Raises FormatError for
    what is none of them, and for a damaged manifest.
    """
    store = open_store(fspath(location))
    kind = kind_of(store)
    if kind == VIEW:
        return CorpusView(store, say)
    return ExportedCorpus(store, say) if kind == EXPORT else PublishedCorpus(store, say, writer)
