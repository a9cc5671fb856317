"""Lists of hosts, one a line, each of which covers the host itself and all below it."""

import re
from collections.abc import Iterable

import numpy as np

from refinery.transforms.core.address.host import host_name, host_of, is_address
from refinery.transforms.core.document import hash64
from refinery.transforms.core.resources import read_list_file


class HostList:
    """8 bytes a host, so lists of millions fit a worker. Two hosts share a hash with odds of 2^-64."""

    def __init__(self, entries: Iterable[str]) -> None:
        """entries: as in a file: "example.com", "*.example.com", ".example.com" and "http://example.com/" all mean the
        host and what is below it."""
        hosts = filter(None, map(host_of_entry, entries))
        self.hashes = np.unique(np.fromiter((hash64("domain", host) for host in hosts), np.uint64))

    def __len__(self) -> int:
        return len(self.hashes)

    def covering(self, host: str) -> str:
        """The entry that covers `host`: itself, or the nearest level above it; "" for none."""
        return next((name for name in levels(host) if self.lists(name)), "") if len(self.hashes) else ""

    def lists(self, host: str) -> bool:
        key = np.uint64(hash64("domain", host))
        at = int(np.searchsorted(self.hashes, key))
        return at < len(self.hashes) and bool(self.hashes[at] == key)


def levels(host: str) -> Iterable[str]:
    """`host` and every domain above it, the longest first; of an IP address itself alone.

    >>> list(levels("www.example.com"))
    ['www.example.com', 'example.com', 'com']
    """
    while host:
        yield host
        host = "" if is_address(host) else host.partition(".")[2]


def host_of_entry(entry: str) -> str:
    """The host that a line of a list means, in the spelling of `host_of`; "" for none."""
    return host_of(entry) if "//" in entry else host_name(entry.lstrip("*."))


def read_list(field: str, path: str) -> list[tuple[str, str]]:
    """(place, entry) of each line of a list file; `#` starts a comment.

    Raises ValueError when the file is missing or is not UTF-8 text, OSError when it cannot be read.
    """
    try:
        lines = read_list_file(path).decode("utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ValueError(f"{field}: {path!r} given, an existing file is allowed") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{field}: {path!r} given, a text file in UTF-8 is allowed") from error
    entries = ((number, re.sub(r"(^|\s)#.*", "", line).strip()) for number, line in enumerate(lines, 1))
    return [(f"{path}:{number}", entry) for number, entry in entries if entry]
