"""What the packed rows of a corpus are, in a line: for the end of `refinery refine`, for `inspect` and `verify`."""

from refinery.loader.format.manifest import Manifest
from refinery.transforms.core.wording import many


def packed_line(manifest: Manifest) -> str:
    """Rows, utilisation (tokens / places, train and validation together) and documents per row; "" without packed rows.

    >>> packed_line(manifest)
    '30 packed rows of 4,096 tokens: 92.6% full, 2.1 documents a row (parts of cut ones count)'
    """
    if manifest.packed is None:
        return ""
    files = [file for shard in manifest.shards for file in shard.packed]
    rows, documents, tokens = (
        sum(getattr(file, name) or 0 for file in files) for name in ("rows", "documents", "tokens")
    )
    line = f"{rows:,} packed rows of {many(manifest.packed.length, 'token')}"
    if not rows:
        return line
    full = tokens / (rows * manifest.packed.length)
    return f"{line}: {full:.1%} full, {documents / rows:.1f} documents a row (parts of cut ones count)"
