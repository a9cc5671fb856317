"""The texts of a shard of a corpus of texts, as its writer reads them back."""

import io
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO

from refinery.loader.errors import FormatError, NoTexts
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.shard_files import read_file
from refinery.loader.storage.fetch import FetchError
from refinery.loader.storage.store import StorageError, Store

if TYPE_CHECKING:
    from refinery.transforms.core.stage import Writer


def shard_texts(store: Store, writer: "Writer", shard: ShardEntry, whole: bool = False) -> Iterator[str]:
    """The text of each document, in order. Memory: what the writer's `read` needs. whole: the files are compared with
    their checksums first, and are in memory.

    Raises NoTexts for shards that hold none; FormatError, which names the file, for what the writer cannot read, and
    for more or fewer texts than the manifest has documents. What the storage raises passes.
    """
    if not writer.files:
        raise NoTexts(store.root)
    what, count = store.url(shard.written[0].path), 0
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context(io.BytesIO(read_file(store, file)) if whole else store.open(file.path))
            for kind, file in zip(writer.files, shard.written, strict=True)
        }
        for text in _read(writer, files, what):
            if count == shard.documents:
                raise FormatError(f"{what}: more texts found, {count} expected from the manifest")
            yield text
            count += 1
    if count < shard.documents:
        raise FormatError(f"{what}: {count} texts found, {shard.documents} expected from the manifest")


def _read(writer: "Writer", files: Mapping[str, BinaryIO], what: str) -> Iterator[str]:
    try:
        for content in writer.read(files):
            yield content.decode()
    except (StorageError, FetchError):
        raise
    except Exception as error:  # of the format's library, or of a user's own code: any of it is damage of this file
        if isinstance(error, OSError) and error.errno:  # else of a library: gzip's and bz2's for damage are OSErrors
            raise
        said = (str(error) or repr(error)).splitlines()[0]
        raise FormatError(
            f"{what}: the writer {writer.name!r} cannot read it ({type(error).__name__}: {said:.200}); run refinery "
            "verify to see what is damaged"
        ) from None
