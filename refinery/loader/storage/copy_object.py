"""A published file of one place at another one: without its bytes passing here wherever storage can do that."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from refinery.loader.errors import CorruptObject
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.local_files import sync_folder
from refinery.loader.storage.publish_new import NO_LINKS
from refinery.loader.storage.s3_store import S3Store
from refinery.loader.storage.s3_upload import PART
from refinery.loader.storage.store import CHUNK, LocalStore, Store, conflict, size_and_crc32c

LINKED, COPIED, COPIED_THERE = "linked", "copied", "copied by the storage"


def copy_object(source: Store, target: Store, name: str, size: int, crc32c: str) -> str:
    """Publish `name` of `source` under the same name in `target`, exclusively; returns how.

    Between local folders of one file system it is a hard link: no byte is read, so its size alone is compared. Between
    buckets Cloud Storage copies, and S3 does so with large objects; the checksum is compared. Else the bytes are read
    once and compared. The same bytes already there are success, others StorageConflict. Raises CorruptObject where
    `source` holds something else than `size` and `crc32c` say, and as the stores do.
    """
    if isinstance(source, GcsStore) and isinstance(target, GcsStore):
        target.copy_from(source, name, (size, crc32c))
        return COPIED_THERE
    if isinstance(source, S3Store) and isinstance(target, S3Store) and size > PART and target.is_beside(source):
        target.copy_from(source, name, (size, crc32c))
        return COPIED_THERE
    if isinstance(source, LocalStore) and isinstance(target, LocalStore):
        if source.size(name) != size:
            raise _corrupt(source, name, (source.size(name) or 0, ""), (size, crc32c))
        if _link(source.local_path(name), target.local_path(name)):
            return LINKED
    with TemporaryDirectory(prefix="refinery-copy-") as scratch:
        local = source.local_path(name)
        if local is None:
            local = Path(scratch) / "object"
            with source.open(name) as stream, local.open("wb") as out:
                while chunk := stream.read(CHUNK):
                    out.write(chunk)
        found = size_and_crc32c(local)
        if found != (size, crc32c):
            raise _corrupt(source, name, found, (size, crc32c))
        target.create(name, local)
    return COPIED


def _link(there: Path, here: Path) -> bool:
    """Whether `here` is now the file that is `there`. Raises StorageConflict where it is another one of other bytes."""
    here.parent.mkdir(parents=True, exist_ok=True)
    real = os.path.realpath(there)
    try:
        os.link(real, here)
    except FileExistsError:
        if os.path.samefile(real, here):
            return True
        found, given = size_and_crc32c(here), size_and_crc32c(there)
        if found != given:
            raise conflict(str(here), found, given) from None
        return True
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return False
    sync_folder(here.parent)
    return True


def _corrupt(source: Store, name: str, found: tuple[int, str], expected: tuple[int, str]) -> CorruptObject:
    return CorruptObject(
        f"{source.url(name)}: {found[0]} bytes, crc32c {found[1] or 'unread'} found; {expected[0]} bytes, crc32c "
        f"{expected[1]} expected from the manifest"
    )
