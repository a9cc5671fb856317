"""Deduplication's stages as the funnel counts them; transforms/dedup/deduplicate.py computes all of them at once."""

from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage

EXACT_DUPLICATES: Stage[Params] = Stage(
    name="exact-duplicates",
    version=1,
    summary="Keep one of the documents of equal text up to white space, the one of best rank.",
    uses=("exact_dup",),
    libraries=("numpy",),
    notes=(
        Note("copies", int, "documents with this content, itself included"),
        Note("copy_sources", str, "the sources that they came from, separated by commas"),
    ),
    reasons=(
        Reason(
            "exact-duplicate",
            "the same text up to white space as a document of better rank",
            "`rank` and `priority` choose which copy stays",
        ),
    ),
)
NEAR_DUPLICATES_IN_SOURCE: Stage[Params] = Stage(
    name="near-duplicates-in-source",
    version=1,
    summary="Within each source, remove documents that are nearly equal to one that is kept.",
    uses=("near_dup_in_source",),
    reasons=(
        Reason(
            "near-duplicate-in-source",
            "similarity to a kept document of the same source of at least its `near_dup_in_source` threshold",
            "raise the threshold",
        ),
    ),
)
NEAR_DUPLICATES: Stage[Params] = Stage(
    name="near-duplicates",
    version=1,
    summary="Across sources and reference corpora, remove documents that are nearly equal to one that is kept.",
    uses=("near_dup", "reference_corpora", "line_dup", "substring_dup"),
    reasons=(
        Reason(
            "near-duplicate",
            "similarity to a kept document of at least `near_dup.threshold`",
            "raise the threshold",
            "Broder 1997; Lee et al. 2022; Penedo et al. 2024, section 3.4",
        ),
    ),
)

DEDUP = (EXACT_DUPLICATES, NEAR_DUPLICATES_IN_SOURCE, NEAR_DUPLICATES)
