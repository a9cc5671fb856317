"""The lane of source code: files of repositories to shards and packed rows. Each stage is the file of its name in
`transforms/`; docs/code-lane.md has them in a table."""

from refinery.transforms.code.chunk_stage import CHUNK
from refinery.transforms.code.code_heuristics import CODE_HEURISTICS
from refinery.transforms.code.license_stage import LICENSE
from refinery.transforms.code.source_text import FIELDS, SOURCE_TEXT, SourceFilesParams
from refinery.transforms.core.lane import Lane
from refinery.transforms.dedup.chunk_copies.cut import CHUNK_COPIES
from refinery.transforms.dedup.near_duplicates import ANY_SOURCE, NearParams
from refinery.transforms.dedup.records.rank import RankParams
from refinery.transforms.dedup.signatures import SignatureParams
from refinery.transforms.dedup.stages import (
    COPIES_OF_DENIED,
    EXACT_DUPLICATES,
    NEAR_DUPLICATES,
    NEAR_DUPLICATES_IN_SOURCE,
)
from refinery.transforms.filter.decontaminate import DECONTAMINATE
from refinery.transforms.filter.pii import PII, PiiParams
from refinery.transforms.filter.secrets_stage import SECRETS, SecretsParams
from refinery.transforms.read.registry import fielded_names
from refinery.transforms.read.sources import READ
from refinery.transforms.tokenize.encode import ENCODE
from refinery.transforms.write.documents import PARTS_OF_CODE
from refinery.transforms.write.megatron import MEGATRON

LANE = Lane(
    name="code",
    summary="Files of source repositories to Megatron shards and packed rows.",
    readers=fielded_names(),
    source=SourceFilesParams,  # a record is a file: repo, commit, path, content
    fields=FIELDS,
    clean=(
        READ,  # files -> RawDocument
        SOURCE_TEXT,  # RawDocument -> Document
        SECRETS,  # before any stage that may put an excerpt into rejects/
        LICENSE,
        CODE_HEURISTICS,
    ),
    parts=PARTS_OF_CODE,  # Document -> documents/ and signatures/; what the licences drop -> withheld/
    dedup=(
        COPIES_OF_DENIED,  # decided together with those below
        EXACT_DUPLICATES,
        NEAR_DUPLICATES_IN_SOURCE,
        NEAR_DUPLICATES,
    ),
    shards=(
        CHUNK_COPIES,
        DECONTAMINATE,  # before PII, which changes words of the items
        PII,
        CHUNK,  # behind everything that changes text
        ENCODE,  # Document -> EncodedDocument
    ),
    writer=MEGATRON,  # EncodedDocument -> .bin .idx .provenance.parquet, and packed rows
    defaults={
        "secrets": SecretsParams(style="code", remains="fail"),
        "pii": PiiParams(style="code", remains="fail"),
        "signature": SignatureParams(unit="code", permutations=128),
        "rank": RankParams(prefer="provenance"),
        "near_dup_in_source": {ANY_SOURCE: NearParams(threshold=0.7, bands=None, rows=None)},
        "near_dup": NearParams(threshold=0.7, bands=14, rows=8, permutations=112),
    },
)
