"""The checks of one shard of a corpus of texts: files, provenance, and every text as its writer reads it back."""

from collections.abc import Iterator

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.file_checks import check_file
from refinery.pipelines.corpus.verify.row_check import Faults
from refinery.pipelines.corpus.verify.shard import ShardFacts, check_provenance
from refinery.pipelines.published.placement import Plan
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.transforms.core.document import document_id, text_bytes
from refinery.transforms.core.stage import Writer


def check_text_shard(
    store: Store, manifest: Manifest, facts: ShardFacts, plan: Plan | None, writer: Writer | None
) -> Iterator[str]:
    """Failures of one shard; fills `facts`. plan: None skips the checks that need it. writer: None where it is not
    known here, which the check of the manifest says; then texts are not read.

    Text i has to be that of row i of the provenance: its size and its id. Memory: what the writer's `read` needs, and
    60 bytes per document.
    """
    shard = facts.shard
    failures = [failure for file in shard.written for failure in check_file(store, file)]
    yield from failures
    with_text = shard.provenance in shard.written
    provenance_failures = [] if with_text else list(check_file(store, shard.provenance))
    yield from provenance_failures
    if provenance_failures or (with_text and failures):
        return  # damaged Parquet is not parsed: its reader is not safe for arbitrary bytes
    changed = dict[int, bytes]()
    sizes = yield from check_provenance(store, facts, plan, None, manifest, changed)
    if failures or sizes is None or facts.ids is None or writer is None or len(sizes) != shard.documents:
        return
    faults, ids = Faults(), facts.ids
    try:
        for row, text in enumerate(shard_texts(store, writer, shard)):
            if (size := text_bytes(text)) != sizes[row]:
                faults.add("texts whose size is not that of their provenance", 1, f"row {row} has {size} bytes")
            elif document_id(text) != (changed.get(row) or ids[row].tobytes()):
                faults.add("texts that are not those of their ids", 1, f"row {row}")
            facts.decoded += 1
    except FormatError as error:
        yield str(error)
    yield from (f"{shard.written[0].path}: {failure}" for failure in faults.sentences())
