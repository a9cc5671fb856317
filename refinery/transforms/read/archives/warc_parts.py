"""Parts of an archive that is compressed record by record, each record a gzip member: a worker reads one part.

Part k of n owns the records from its cut on, up to the next part's. A cut is looked for in the k-th of n equal ranges
of bytes: the first place from which the reader, begun there, gives nothing but sound records, for more than 64 KiB of
the file or up to its end. Where a range has no such place, the part before reads it, too. Cuts depend on the file's
bytes alone, so every part finds the same ones.

Bytes inside a record may look like a member: a page that is itself an archive is often stored as it is. But a deflate
block stores at most 65,535 bytes (RFC 1951, section 3.2.4), and no member reads on beyond the next block's header, as
its checksum would be wrong. So no archive in a record passes for a part of the file around it unless it is made for
that, with the very blocks in mind that the compressor will make. Then the part before finds a member that goes on over
the cut, and raises PartsDoNotMeet. It cannot be wrong silently: the first part begins at the file's first byte, and
each part ends at the very member with which the next one begins, as one reader of all the file would reach it.
"""

from refinery.transforms.read.archives.warc_records import NOWHERE, Archive, Record, looks_like_head
from refinery.transforms.read.byte_source import PROBE_COST, PROBED, ByteSource, MemberStream, open_source
from refinery.transforms.read.members import GZIP, Broken, GzipMember
from refinery.transforms.read.reader import Split
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.task import LimitParams, ReadTask

FIRST = 1 << 20  # most bytes of the first record, inflated: usually the crawler's notes about itself
STORED = (1 << 16) - 1  # most bytes that a block of deflate stores
# Inflated bytes that a reader may hold beyond a record, because it searched there. Behind as many sound ones a reader
# that begins at a cut holds what one of the whole file does, so the hash of a damaged record is the same.
AHEAD = 1 << 17
REMOTE = 4  # times the size of a part of a local file


def part_of(task: ReadTask, source: ByteSource, limits: LimitParams) -> tuple[int, int] | None:
    """Where the task's part of the file begins, and where to stop; None for a part without records.

    A file that is not compressed record by record is the first part's. Cost: the file's first records, and those around
    both cuts.
    """
    looker = source.beside()
    if not is_by_record(looker):
        return (0, NOWHERE) if task.part == 0 else None
    borders = [task.size * part // task.parts for part in range(task.parts + 1)]
    limit = limits.max_decompressed_bytes

    def cut(part: int) -> int | None:
        return find_cut(looker, borders[part], borders[part + 1], limit)

    later = map(cut, range(task.part + 1, task.parts))
    stop = next((place for place in later if place is not None), NOWHERE)
    begin = cut(task.part) if task.part else 0  # looked for last, as what is there is read next
    return None if begin is None else (begin, stop)


def is_by_record(source: ByteSource) -> bool:
    """Whether a WARC file's first member holds its first record, a small one, and another begins behind it."""
    stream = MemberStream(source)
    if stream.magic != GZIP:
        return False
    member, size = GzipMember(source, 0), 0
    try:
        while data := member.read():
            size += len(data)
            if size > FIRST:
                return False
    except Broken:
        return False
    if not looks_like_head(stream.probe(member.end)):
        return False
    archive = Archive(stream, FIRST, is_arc=False)
    archive.need(1)
    record = archive.record(0, 0)
    return isinstance(record, Record) and not record.is_arc and archive.is_whole is False


def find_cut(source: ByteSource, begin: int, end: int, limit: int) -> int | None:
    """The first member from `begin` up to `end` from which on records are sound; None where there is none, or where
    looking for it takes too long: twice the range, and 128 MB, may be inflated for it."""
    stream, tried, at = MemberStream(source), 0, begin
    while begin <= (at := source.find(GZIP, at, end)) < end and tried <= PROBED + 2 * (at - begin):
        tried += PROBE_COST[GZIP]
        failed = at
        if stream.probe(at).startswith(b"WARC/"):
            failed, inflated = sound_up_to(source, at, limit)
            if failed < 0:
                return at
            tried += inflated
        at = max(at + 1, failed)  # the members up to there lead to the same place
    return None


def sound_up_to(source: ByteSource, begin: int, limit: int) -> tuple[int, int]:
    """Where in the file the first record lies that is not sound, of those from the member at `begin` on, and how much
    was inflated up to there; (-1, …) where there is none before so many that the member is none of another record's
    bytes."""
    archive = Archive(MemberStream(source, start=begin), limit, False, begin)
    stream, offset = archive.stream, begin
    while True:
        archive.skip_newlines()
        start = archive.position
        if not archive.need(1):
            return (offset if stream.broken else -1), stream.total
        offset = archive.offset_of(start)
        if offset - begin > STORED and start > AHEAD and start == stream.marks[0][0]:
            return -1, stream.total
        record = archive.record(start, offset)
        if not isinstance(record, Record) or record.is_arc:
            return offset, stream.total
        archive.release(archive.position)


def count_parts(task: ReadTask, split_bytes: int) -> int:
    """Parts of about `split_bytes` bytes of a gzip file, four times that of a remote one, where each look at a cut
    costs 8 MiB. The first bytes of a local file say whether it can be cut; the readers of a remote one find out, as a
    request for each file would take the planning too long."""
    split_bytes *= REMOTE if is_remote(task.place) else 1
    if task.size <= split_bytes or not task.path.lower().endswith(".gz"):
        return 1
    if not is_remote(task.place):
        try:
            with open_source(task.place) as source:
                if not is_by_record(source):
                    return 1
        except OSError:
            return 1
    return -(-task.size // split_bytes)


BY_RECORD = Split(count_parts)
