"""What takedowns did to the documents that are asked for, from the listings that they leave."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from refinery.loader.format.manifest import Manifest, unseal
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA, STAGE_OF_TEXTS, Takedown
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.request import WHERE
from refinery.pipelines.corpus.trace.answers import CameBack, Doc, Kept, TakenDown
from refinery.pipelines.corpus.trace.lookup import DOCUMENTS
from refinery.pipelines.published.find_rows import Row, Wanted, find_rows
from refinery.pipelines.run.differences import TOKENIZED_FROM


def find_taken_down(corpus: Corpus, wanted: Wanted) -> Iterator[TakenDown]:
    """The documents that went, by any takedown. Cost: the searched columns of each listing; next to nothing without
    takedowns."""
    takedowns = corpus.versions if wanted else ()
    known = corpus.manifest.shards if takedowns else ()
    shards = {(shard.split, shard.domain, shard.index): shard.name for shard in known}
    for number, takedown in enumerate(takedowns, 1):
        for _, row in find_rows(corpus.store, takedown.removed, wanted, REMOVED_SCHEMA.names, REMOVED_SCHEMA):
            yield TakenDown(
                doc=doc_of(row),
                takedown=number,
                previous=takedown.previous,
                why=row["why"],
                request=row["request"],
                rule=_rule(corpus, takedown) if row["request"] == WHERE else "",
                was=row["was"],
                shard=shards.get((row["split"], row["domain"], row["index"]), ""),
                document=row["row"],
            )


def takedowns_of_texts(manifest: Manifest) -> Iterator[str]:
    """A line for a corpus of tokens whose texts had a takedown: the lists of it are there."""
    texts = manifest.further.get(TOKENIZED_FROM)
    if isinstance(texts, Mapping) and any(stage.name == STAGE_OF_TEXTS for stage in manifest.stages):
        which = f"version {texts.get('version')} of the texts {texts.get('name')!s:.100}"
        yield f"what was removed from the texts was not searched: trace it in {which}, of which this corpus was made"


def _rule(corpus: Corpus, takedown: Takedown) -> str:
    """The rule that a takedown's proof names."""
    request = unseal(corpus.read(takedown.proof), corpus.store.url(takedown.proof)).get("request")
    return str(request.get("where", "")) if isinstance(request, dict) else ""


def with_returns(corpus: Corpus, kept: Sequence[Kept]) -> list[Kept]:
    """These documents, with the takedown that brought them back where one did. Cost as of `find_taken_down`."""
    found: dict[Doc, CameBack] = {}
    ids = frozenset(bytes.fromhex(one.doc.id) for one in kept)
    for number, takedown in enumerate(corpus.versions, 1):
        if ids and takedown.added:
            found_rows = find_rows(corpus.store, takedown.added, Wanted(id=ids), ADDED_SCHEMA.names, ADDED_SCHEMA)
            rows = [row for _, row in found_rows]
            before = _gone(corpus.store, takedown, frozenset(row["instead_of"] for row in rows))
            for row in rows:
                instead_of = row["instead_of"].hex()
                found[doc_of(row)] = CameBack(number, before.get(instead_of, Doc(instead_of)))
    return [replace(one, came_back=found.get(one.doc)) for one in kept]


def _gone(store: Store, takedown: Takedown, ids: frozenset[bytes]) -> dict[str, Doc]:
    """Id -> the document that a takedown removed; of several of one id that which was in a shard."""
    wanted, found = Wanted(id=ids), dict[str, Doc]()
    for _, row in find_rows(store, takedown.removed, wanted, (*DOCUMENTS, "split")) if ids else ():
        if row["split"] or row["id"].hex() not in found:
            found[row["id"].hex()] = doc_of(row)
    return found


def doc_of(row: Row) -> Doc:
    """The document of a row; id and url are "" where it has none."""
    return Doc(row["id"].hex() if "id" in row else "", row.get("url", ""), row["source"], row["origin"])
