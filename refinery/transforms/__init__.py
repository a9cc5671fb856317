"""Stages of the funnel, each a declaration and a PTransform: `from refinery.transforms import URL, Deduplicate`.

Names are imported on first use, so a stage loads no library that only another one needs.
"""

from typing import TYPE_CHECKING

from refinery.offers import offers

if TYPE_CHECKING:
    from refinery.transforms.code.chunk_stage import CHUNK as CHUNK
    from refinery.transforms.code.code_heuristics import CODE_HEURISTICS as CODE_HEURISTICS
    from refinery.transforms.code.license_stage import LICENSE as LICENSE
    from refinery.transforms.code.source_text import SOURCE_TEXT as SOURCE_TEXT
    from refinery.transforms.core.document import Document as Document
    from refinery.transforms.core.exchange.exchange import Deal as Deal
    from refinery.transforms.core.exchange.exchange import Exchange as Exchange
    from refinery.transforms.core.lane import Lane as Lane
    from refinery.transforms.core.params import Params as Params
    from refinery.transforms.core.per_document import PerDocument as PerDocument
    from refinery.transforms.core.per_document import PerFile as PerFile
    from refinery.transforms.core.stage import Stage as Stage
    from refinery.transforms.dedup.chunk_copies.cut import CHUNK_COPIES as CHUNK_COPIES
    from refinery.transforms.dedup.cut_lines import LINES as LINES
    from refinery.transforms.dedup.cut_substrings import SUBSTRINGS as SUBSTRINGS
    from refinery.transforms.dedup.cutting_pass import CuttingPass as CuttingPass
    from refinery.transforms.dedup.deduplicate import Deduplicate as Deduplicate
    from refinery.transforms.extract.extract import EXTRACT as EXTRACT
    from refinery.transforms.filter.decontaminate import DECONTAMINATE as DECONTAMINATE
    from refinery.transforms.filter.heuristics import HEURISTICS as HEURISTICS
    from refinery.transforms.filter.labels import LABELS as LABELS
    from refinery.transforms.filter.language import LANGUAGE as LANGUAGE
    from refinery.transforms.filter.perplexity import PERPLEXITY as PERPLEXITY
    from refinery.transforms.filter.pii import PII as PII
    from refinery.transforms.filter.quality import QUALITY as QUALITY
    from refinery.transforms.filter.rules.keep import KEEP as KEEP
    from refinery.transforms.filter.secrets_stage import SECRETS as SECRETS
    from refinery.transforms.filter.toxicity import TOXICITY as TOXICITY
    from refinery.transforms.filter.url import URL as URL
    from refinery.transforms.read.read_sources import ReadSources as ReadSources
    from refinery.transforms.read.reader import Reader as Reader
    from refinery.transforms.read.sources import READ as READ
    from refinery.transforms.rights.opt_out import OPT_OUT as OPT_OUT
    from refinery.transforms.rights.page_license import PAGE_LICENSE as PAGE_LICENSE
    from refinery.transforms.tokenize.encode import ENCODE as ENCODE
    from refinery.transforms.write.megatron import MEGATRON as MEGATRON
    from refinery.transforms.write.write_documents import WriteDocuments as WriteDocuments
    from refinery.transforms.write.write_shards import WriteShards as WriteShards

__getattr__, __dir__ = offers(__name__, __file__)
