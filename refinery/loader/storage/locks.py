"""A lock among the processes of one machine, also where the file system has no locks.

Where flock is refused (NFS without its lock service, Lustre without `-o flock`, some FUSE), the lock is an abstract
Unix socket named after the file. The kernel gives up both when their holder dies. Neither one is relied on between
machines: flock may be local to a machine even on a shared file system.
"""

import contextlib
import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from hashlib import blake2b, sha256
from pathlib import Path

# What a file system without locks says.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EPERM)
POLL_SECONDS = 0.002


def machine_name() -> str:
    """This machine in the name of a file that only its processes may judge: 8 hexadecimal digits."""
    return blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def hold(descriptor: int, path: str | Path, wait: bool = True) -> int:
    """Lock an open file, alone; returns the descriptor that holds the lock until it is closed: `descriptor`, or another
    one where the file system has no locks.

    path: of the file, for the name of that other lock and for messages. descriptor: open for writing, which NFS needs.
    Raises BlockingIOError if another process has the lock and `wait` is False; OSError, which names the path, where
    there are no locks of either kind.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError as refused:
        if refused.errno not in NO_LOCKS:
            raise OSError(refused.errno, f"flock: {os.strerror(refused.errno or 0)}", str(path)) from refused
        return _hold_socket(path, wait, refused)
    return descriptor


@contextlib.contextmanager
def holding(descriptor: int, path: str | Path, needed: bool = True) -> Iterator[None]:
    """`hold` while the context lasts. The file stays open, and with flock it stays locked until it is closed.

    needed: False to go on without a lock where there are no locks of either kind.
    """
    lock = descriptor
    with contextlib.nullcontext() if needed else contextlib.suppress(OSError):
        lock = hold(descriptor, path)
    try:
        yield
    finally:
        if lock != descriptor:
            os.close(lock)


def _hold_socket(path: str | Path, wait: bool, refused: OSError) -> int:
    name = sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    while True:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lock.bind(f"\0refinery-{os.getuid()}-{name}")
            return lock.detach()
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE:
                said = f"locks are refused: flock says {os.strerror(refused.errno or 0)}, a socket {error.strerror}"
                raise OSError(refused.errno, said, str(path)) from error
            if not wait:
                raise BlockingIOError(errno.EWOULDBLOCK, "locked by another process", str(path)) from None
        time.sleep(POLL_SECONDS)
