"""Give a finished file its final name exclusively: atomic, and never in place of another file.

A hard link does that on every file system of Unix, NFS and Lustre included. Where links are refused (FAT, SMB, some
FUSE), a rename that replaces nothing does it, if the file system knows that. Where it does not (FUSE again), writers
first take a claim, a hidden file that is created exclusively, and then rename.

Claims have one weakness. A claim whose writer was killed would stay forever, so it lapses when nobody changed it for
CLAIM_SECONDS of the waiting process's own clock. A writer that is suspended for longer, exactly between its last look
at the claim and its rename, then replaces what another one has published meanwhile: with a whole file, never part of
one, which has the same bytes wherever a name decides them.
"""

import contextlib
import ctypes
import errno
import functools
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp-"  # names that begin so are of no object
CLAIM = f"{TEMPORARY}claim-"
# File systems without hard links, with too many of one file, or that take folders for other file systems.
NO_LINKS = (
    errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EACCES, errno.EXDEV, errno.EMLINK
)  # fmt: skip
NO_NOREPLACE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)
CLAIM_SECONDS = 30.0
POLL_SECONDS = 0.05
AT_FDCWD, RENAME_NOREPLACE = -100, 1  # linux/fcntl.h, linux/fs.h


def publish_new(temporary: Path, final: Path) -> None:
    """`temporary` under its final name; afterwards it may be there under both names, or under the final one alone.

    Raises FileExistsError if `final` is there, which may be the work of this very call: a network file system repeats a
    request whose answer was lost. FileNotFoundError likewise, if `temporary` is gone. Other errors name both paths.
    """
    try:
        os.link(temporary, final)
        return
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        refused = error
    try:
        if not _rename_new(temporary, final):
            while not _rename_claimed(temporary, final):
                pass  # the claim lapsed while this process stood still
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError as error:
        said = f"no exclusive creation: a hard link fails ({refused.strerror}), and so does what replaces it"
        raise OSError(error.errno, f"{said} ({error.strerror})", str(final)) from error


def _rename_new(temporary: Path, final: Path) -> bool:
    """Rename, replacing nothing. False where the system or the file system cannot do that."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(temporary), AT_FDCWD, os.fsencode(final), RENAME_NOREPLACE) == 0:
        return True
    code = ctypes.get_errno()
    if code in NO_NOREPLACE:
        return False
    raise OSError(code, os.strerror(code), str(temporary), None, str(final))


@functools.cache
def _renameat2() -> Callable[..., Any] | None:
    with contextlib.suppress(AttributeError, OSError):  # another system, or an old C library
        found: Any = ctypes.CDLL(None, use_errno=True).renameat2
        found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        return found  # type: ignore[no-any-return]  # ctypes knows no functions' types
    return None


def _rename_claimed(temporary: Path, final: Path) -> bool:
    """Rename under a claim. False if another process has taken the claim since."""
    with _claimed(final) as is_mine:
        if os.path.lexists(final):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final))
        if not is_mine():
            return False
        os.rename(temporary, final)
        return True


@contextlib.contextmanager
def _claimed(final: Path) -> Iterator[Callable[[], bool]]:
    """The right to create `final`; yields what says whether it still is. Raises FileExistsError once it is there."""
    claim = final.parent / f"{CLAIM}{hashlib.blake2b(os.fsencode(final.name), digest_size=8).hexdigest()}"
    own = secrets.token_hex(16).encode()
    seen, since = b"none", time.monotonic()
    while not _create(claim, own):
        if os.path.lexists(final):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final))
        held = _content(claim)
        if held == own:  # it was created, and the answer was lost
            break
        if held != seen:
            seen, since = held, time.monotonic()
        elif time.monotonic() - since > CLAIM_SECONDS:
            claim.unlink(missing_ok=True)
            seen = b"none"
        time.sleep(POLL_SECONDS)
    try:
        yield lambda: _content(claim) == own
    finally:
        if _content(claim) == own:
            claim.unlink(missing_ok=True)


def _create(claim: Path, own: bytes) -> bool:
    try:
        descriptor = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        try:
            os.write(descriptor, own)
        finally:
            os.close(descriptor)
    except OSError:  # no space: the next process need not wait for an empty claim
        claim.unlink(missing_ok=True)
        raise
    return True


def _content(claim: Path) -> bytes:
    """b"" if it is gone, or is just being made."""
    try:
        return claim.read_bytes()
    except FileNotFoundError:
        return b""
