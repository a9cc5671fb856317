"""Errors about the contents of published files."""


class FormatError(ValueError):
    """A file does not have the documented format. The message names the file and what is wrong."""


class CorruptObject(FormatError):
    """Two reads gave bytes with the wrong checksum. The message names the file and both checksums."""


class CorruptShard(CorruptObject):
    """CorruptObject for a shard's file. The message names the file, the byte range or block, and both checksums."""
