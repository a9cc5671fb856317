"""The web lane: pages and text records to Megatron shards. Each stage is the file of its name in `transforms/`."""

from refinery.transforms.core.lane import Lane
from refinery.transforms.dedup.cut_lines import LINES
from refinery.transforms.dedup.cut_substrings import SUBSTRINGS
from refinery.transforms.dedup.stages import (
    EXACT_DUPLICATES,
    NEAR_DUPLICATES,
    NEAR_DUPLICATES_IN_SOURCE,
    URL_DUPLICATES,
)
from refinery.transforms.extract.extract import EXTRACT
from refinery.transforms.filter.decontaminate import DECONTAMINATE
from refinery.transforms.filter.heuristics import HEURISTICS
from refinery.transforms.filter.labels import LABELS
from refinery.transforms.filter.language import LANGUAGE
from refinery.transforms.filter.perplexity import PERPLEXITY
from refinery.transforms.filter.pii import PII
from refinery.transforms.filter.quality import QUALITY
from refinery.transforms.filter.rules.keep import KEEP
from refinery.transforms.filter.secrets_stage import SECRETS
from refinery.transforms.filter.toxicity import TOXICITY
from refinery.transforms.filter.url import URL
from refinery.transforms.read.registry import reader_names
from refinery.transforms.read.sources import READ
from refinery.transforms.rights.opt_out import OPT_OUT
from refinery.transforms.rights.page_license import PAGE_LICENSE
from refinery.transforms.tokenize.encode import ENCODE
from refinery.transforms.write.documents import PARTS
from refinery.transforms.write.megatron import MEGATRON

LANE = Lane(
    name="web",
    summary="Web crawl and text data sets to Megatron shards.",
    readers=reader_names(),
    clean=(
        READ,  # files -> RawDocument
        EXTRACT,  # RawDocument -> Document
        SECRETS,  # before any stage that may put an excerpt into rejects/
        URL,
        LANGUAGE,
        HEURISTICS,
    ),
    parts=PARTS,  # Document -> documents/ and signatures/
    dedup=(
        URL_DUPLICATES,
        EXACT_DUPLICATES,
        NEAR_DUPLICATES_IN_SOURCE,
        NEAR_DUPLICATES,
    ),
    shards=(
        OPT_OUT,  # here, so this week's opt-outs need nothing before phase 3 again
        PAGE_LICENSE,
        SUBSTRINGS,  # before LINES, since it keeps the lines' numbers
        LINES,
        PERPLEXITY,
        QUALITY,
        LABELS,
        TOXICITY,
        DECONTAMINATE,  # before PII, which changes words of the items
        PII,
        KEEP,  # behind all that measures
        ENCODE,  # Document -> EncodedDocument
    ),
    writer=MEGATRON,  # EncodedDocument -> .bin .idx .provenance.parquet
)
