"""Deduplication's stages as the funnel counts them; transforms/dedup/deduplicate.py computes all of them at once."""

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from refinery.transforms.core.address.normalise import ADDRESS_BYTES, ADDRESS_SCHEME, address_hash
from refinery.transforms.core.document import COPIES, Document
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.dedup.cutting_pass import ComparingStage, Hashed, HashedColumn
from refinery.transforms.dedup.records.rank import seconds_of_date
from refinery.transforms.dedup.signatures import SignatureParams


class UrlDupParams(Params):
    """Which capture of a page is kept."""

    prefer: Literal["newest", "longest"] = "newest"  # Llama 3: Grattafiori et al. 2024, section 3.1.1
    """`newest`: latest meta `date`, then priority of the source, then most UTF-8 bytes; `longest`: most bytes, then
    latest, then priority"""


def address_column(docs: Sequence[Document], signature: SignatureParams) -> pa.Array:
    """`address_hash` of documents."""
    return pa.array([address_hash(doc.url) for doc in docs], pa.binary(ADDRESS_BYTES))


def date_column(docs: Sequence[Document], signature: SignatureParams) -> pa.Array:
    """`seconds_of_date` of documents."""
    return pa.array([seconds_of_date(doc.meta.get("date", "")) for doc in docs], pa.int64())


URL_DUPLICATES = ComparingStage(
    name="url-duplicates",
    version=1,
    summary="Keep one capture of every address, whatever the texts.",
    params=UrlDupParams,
    section="url_dup",
    on=False,
    shared=True,
    libraries=("idna", "numpy"),
    schemes=(ADDRESS_SCHEME,),
    hashed=Hashed(
        name="addresses",
        columns=(
            HashedColumn("address", pa.binary(ADDRESS_BYTES), address_column),
            HashedColumn("date", pa.int64(), date_column),
        ),
        scheme=ADDRESS_SCHEME,
    ),
    reasons=(
        Reason(
            "url-duplicate",
            "another capture of the same address is newer (or longer)",
            "leave `url_dup` off where many documents have one address",
            "Grattafiori et al. 2024, section 3.1.1; Penedo et al. 2023, section 3.3",
        ),
    ),
)
COPIES_OF_DENIED: Stage[Params] = Stage(
    name="copies-of-denied",
    version=1,
    summary="Drop copies and near copies of files that were dropped for their licence.",
    uses=("license",),
    concerns=("rights",),
    reasons=(
        Reason(
            "copy-of-denied",
            "a copy or near copy of a file that was dropped for its licence; `kept_id` in removals/ is that file's id",
            "set `license.copies: keep` where copies under other licences may be used",
        ),
    ),
)
EXACT_DUPLICATES: Stage[Params] = Stage(
    name="exact-duplicates",
    version=1,
    summary="Of the documents whose texts differ at most in white space, keep the one of best rank.",
    uses=("exact_dup",),
    libraries=("numpy",),
    notes=(
        Note(COPIES, int, "documents with this content, itself included"),
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
    version=2,
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
    version=2,
    summary="Across sources and reference corpora, remove documents that are nearly equal to one that is kept.",
    uses=("near_dup", "reference_corpora"),
    reasons=(
        Reason(
            "near-duplicate",
            "similarity to a kept document of at least `near_dup.threshold`",
            "raise the threshold",
            "Broder 1997; Lee et al. 2022; Penedo et al. 2024, section 3.4",
        ),
    ),
)

DEDUP = (URL_DUPLICATES, EXACT_DUPLICATES, NEAR_DUPLICATES_IN_SOURCE, NEAR_DUPLICATES)
