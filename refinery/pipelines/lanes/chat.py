"""The lane of conversations: turns to shards and packed rows in which only the assistant's tokens are trained. Each
stage is the file of its name in `transforms/`; docs/recipes/chat.md describes it."""

from refinery.transforms.core.lane import Lane
from refinery.transforms.dedup.stages import EXACT_DUPLICATES, NEAR_DUPLICATES, NEAR_DUPLICATES_IN_SOURCE
from refinery.transforms.filter.decontaminate import DECONTAMINATE
from refinery.transforms.filter.pii import PII
from refinery.transforms.filter.secrets_stage import SECRETS
from refinery.transforms.read.sources import READ
from refinery.transforms.tokenize.chat.conversations import CONVERSATIONS
from refinery.transforms.tokenize.chat.sources import ConversationsParams
from refinery.transforms.tokenize.encode_marked import ENCODE_MARKED
from refinery.transforms.write.documents import PARTS
from refinery.transforms.write.megatron import MEGATRON_MASKED

LANE = Lane(
    name="chat",
    summary="Conversations, and texts with spans, to Megatron shards and packed rows with loss masks.",
    readers=("jsonl", "parquet"),
    source=ConversationsParams,  # a record has turns: messages or conversations
    clean=(
        READ,  # files -> RawDocument
        CONVERSATIONS,  # RawDocument -> Document, with the characters that are trained
        SECRETS,  # moves these
    ),
    parts=PARTS,  # Document -> documents/ and signatures/
    dedup=(
        EXACT_DUPLICATES,
        NEAR_DUPLICATES_IN_SOURCE,
        NEAR_DUPLICATES,
    ),
    shards=(
        DECONTAMINATE,  # before PII, which changes words of the items
        PII,  # moves them, too
        ENCODE_MARKED,  # Document -> EncodedDocument, with the tokens that are trained
    ),
    writer=MEGATRON_MASKED,  # EncodedDocument -> .bin .idx .provenance.parquet, and packed rows
    defaults={"near_dup": None},
)
