"""README.md of a corpus of texts, which the corpus itself has: `datasets` loads the folder by its front matter.

Short, and made of the manifest alone, so a run writes the same bytes each time. `refinery card` makes the full card.
"""

from collections.abc import Mapping
from typing import Any

from refinery.loader.format.document_fields import PROVENANCE, fields_of
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.reports.cards.cards import CARDS, DEFAULT
from refinery.pipelines.reports.cards.front_matter import (
    front_matter,
    load_program,
    shard_data,
    shared_data,
    writes_lines,
)
from refinery.pipelines.reports.cards.markdown import code, fenced, table, text
from refinery.pipelines.reports.cards.tables import funnel_table, inline, made_by, totals_line
from refinery.pipelines.reports.run.facts import lane_stages
from refinery.transforms.core.document import FIELDS
from refinery.transforms.write.text_writers import TEXT_WRITERS

README = CARDS[DEFAULT].file


def text_card(manifest: Manifest) -> bytes:
    """The card of a corpus of texts that one of our writers wrote."""
    data = shared_data(manifest.name, manifest.totals["documents"]) | shard_data(manifest)
    meanings = {note.name: note.meaning for stage in lane_stages(manifest.lane) for note in stage.notes}
    meanings |= {field.name: field.meaning_in(PROVENANCE) for field in fields_of(PROVENANCE)}
    meanings["text"] = "the text that was written"
    meanings[FIELDS] = "a JSON object with the fields of the record, where its source keeps them"
    if writes_lines(manifest):
        meanings[FIELDS] = "fields of the record are further keys, where its source keeps them"
    names = ["text", *manifest.row_schema.names]
    lines = [
        *front_matter(data),
        f"# {text(manifest.name)}",
        "",
        f"{totals_line(manifest)}. Made by {made_by(manifest)}. Licence and terms are those of the sources. `refinery "
        "card` writes the full data card.",
        "",
        *fenced(load_program(), "python"),
        "## How it was made",
        "",
        *funnel_table(manifest.funnel),
        "## Columns",
        "",
        *table(("column", "meaning"), ((code(n), inline(meanings.get(n, "a field of the records"))) for n in names)),
    ]
    return ("\n".join(lines).rstrip() + "\n").encode()


def with_text_card(store: Store, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a manifest of a corpus of texts with README.md among its files, which is written; another payload
    as it is. payload: as of `make_manifest`."""
    if payload["writer"] not in TEXT_WRITERS:
        return dict(payload)
    data = text_card(make_manifest(payload).manifest)
    store.create(README, data)
    listed = {"path": README, **checksums(data)._asdict()}
    return {**payload, "files": sorted([*payload["files"], listed], key=lambda file: str(file["path"]))}
