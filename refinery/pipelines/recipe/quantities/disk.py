"""How much disk a run on one machine needs, from what it reads: the rules of docs/architecture.md ("What fits on one
machine")."""

from collections.abc import Sequence

from refinery.transforms.read.lines import COMPRESSED_RATIO
from refinery.transforms.read.reader import ends_with
from refinery.transforms.read.registry import find_reader, readers
from refinery.transforms.read.task import ReadTask

# Disk for each byte of kept text, measured there: 1.0 (long documents) to 1.4 (web pages), half of it in work/.
DISK_PER_TEXT = 1.4
# Temporary files for each byte of kept text, measured there: what crosses between workers in the largest exchange, that
# of tokens, and the tokens of the shards that are being written.
SCRATCH_PER_TEXT = 0.7


def text_bytes(tasks: Sequence[ReadTask]) -> int:
    """Bytes of text in the files of these tasks, about as many as there can be before anything is dropped."""
    total = 0.0
    plain = [ending for reader in readers().values() if reader.compressed for ending in reader.endings]
    for path, (size, kind) in {task.path: (task.size, task.format) for task in tasks}.items():
        unpacked = size if ends_with(path, plain, compressed=False) else size * COMPRESSED_RATIO
        total += unpacked * find_reader(kind).text_share
    return round(total)
