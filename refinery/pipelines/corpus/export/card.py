"""The card of a Hugging Face folder: README.md, whose front matter says where the rows of each split are.

The card of the corpus itself is `refinery card` (pipelines/reports/cards/); both are made of the same parts.
"""

from collections.abc import Mapping, Sequence

from refinery.loader.format.document_fields import EXPORTS, fields_of
from refinery.loader.format.manifest import Manifest
from refinery.pipelines.reports.cards.front_matter import (
    configurations,
    front_matter,
    load_program,
    shared_data,
    splits_of,
)
from refinery.pipelines.reports.cards.markdown import code, fenced, text
from refinery.pipelines.reports.cards.tables import (
    funnel_table,
    made_by,
    recipe_block,
    source_counts,
    totals_line,
    without_paths,
)


def write_card(manifest: Manifest, fields: Sequence[str], sources: Mapping[str, Mapping[str, int]]) -> bytes:
    """The card of a corpus' export, the same bytes each time. sources: documents, tokens and bytes of each."""
    configs = configurations(splits_of(manifest), lambda split, domain: f"data/{domain}/{split}-*.parquet")
    data = shared_data(manifest.name, manifest.totals["documents"]) | {"configs": configs}
    lines = [
        *front_matter(data),
        f"# {text(manifest.name)}",
        "",
        f"{totals_line(manifest)}. Made by {made_by(manifest)} from the recipe below; the corpus has the fingerprint "
        f"{code(manifest.fingerprint)}. Licence and terms are those of the sources: add them here.",
        "",
        *fenced(load_program(), "python"),
        "## Sources",
        "",
        *source_counts(sources),
        "## Fields",
        "",
        *(f"- {code(name)}: {DESCRIPTIONS.get(name, 'noted by a stage of the recipe')}" for name in fields),
        "",
        "## From input to corpus",
        "",
        *funnel_table(manifest.funnel),
        "## Recipe",
        "",
        *recipe_block(without_paths(manifest.recipe)),
    ]
    return "\n".join(lines).encode()


DESCRIPTIONS = {field.name: field.meaning_in(EXPORTS) for field in fields_of(EXPORTS)}
