"""The document that a token of a shard is in, and its text, from one row group and one range of bytes."""

from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.trace.answers import SHOWN, Around
from refinery.pipelines.published.find_rows import Row
from refinery.pipelines.published.shard_tokens import corpus_tokenizer, read_tokens, shard_path

AROUND = 40  # tokens on each side
LISTED = 5  # shards that a message names


def find_shard(manifest: Manifest, name: str) -> ShardEntry:
    """The shard of that name (a file's suffix may follow), or the train split's of that number. Raises ValueError that
    says what there is."""
    if name.isascii() and name.isdigit():
        found = [s for s in manifest.shards if s.split == "train" and len(name) < 19 and s.index == int(name)]
    else:
        found = [s for s in manifest.shards if name in (shard_path(s), *(file.path for file in s.files))]
    if len(found) == 1:
        return found[0]
    there = found or [s for s in manifest.shards if not s.index] or list(manifest.shards)
    names = ", ".join(shard_path(s) for s in there[:LISTED])
    what = "several shards have this number" if found else "no shard of the corpus has this name"
    raise ValueError(f"--token {name[:SHOWN]!a}: {what}; its {len(manifest.shards):,} shards are named like {names}")


def text_around(corpus: Corpus, shard: ShardEntry, row: Row, offset: int) -> Around:
    """The text of a token and of up to AROUND others of its document on each side."""
    first, end = row["token_offset"], row["token_offset"] + row["token_count"]
    start, stop = max(first, offset - AROUND), min(end, offset + 1 + AROUND)
    ids = read_tokens(corpus, shard, start, stop)
    decode, at = corpus_tokenizer(corpus).decode, offset - start
    return Around(int(ids[at]), decode(ids[:at]), decode(ids[at : at + 1]), decode(ids[at + 1 :]))
