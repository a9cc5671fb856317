"""How much disk a run on one machine needs, from what it reads: the rules of docs/architecture.md ("What fits on one
machine")."""

from collections.abc import Sequence

from refinery.transforms.read.plan import COMPRESSED_RATIO, ReadTask

# Disk for each byte of kept text, measured there: 1.0 (long documents) to 1.4 (web pages), half of it in work/.
DISK_PER_TEXT = 1.4
# Temporary files for each byte of kept text, measured there: what crosses between workers in the largest exchange, that
# of tokens, and the tokens of the shards that are being written.
SCRATCH_PER_TEXT = 0.7
# Text in a compressed crawl, for each byte: 4.2 MB were extracted from 20.9 MB of .warc.gz (684 pages, measured there).
TEXT_OF_CRAWL = 0.2
PLAIN = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".html", ".htm")
CRAWLS = ("warc", "arc")


def text_bytes(tasks: Sequence[ReadTask]) -> int:
    """Bytes of text in the files of these tasks, about as many as there can be before anything is dropped."""
    total = 0.0
    for path, (size, kind) in {task.path: (task.size, task.format) for task in tasks}.items():
        packed = not path.lower().endswith((*PLAIN, ".warc", ".arc", ".wet"))
        unpacked = size * COMPRESSED_RATIO if packed else size
        total += unpacked * (TEXT_OF_CRAWL / COMPRESSED_RATIO if kind in CRAWLS else 1)
    return round(total)
