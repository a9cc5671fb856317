"""Which code this is: a digest of the loader's sources, which changes with every change of them."""

import hashlib
from functools import cache
from pathlib import Path

SOURCES = (".py", ".pyi", ".c", ".h")  # what an installed package has, too, whatever compiled it
_FOLDER = Path(__file__).parent


def digest_of(folder: Path) -> str:
    """16 hexadecimal digits of the SHA-256 of all source files in a folder and those in it, with their paths.

    The same on every machine and however the files came there; nothing but their names and bytes counts.
    """
    found = hashlib.sha256()
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.suffix in SOURCES}
    for name in sorted(paths):
        data = paths[name].read_bytes()
        found.update(f"{name}\0{len(data)}\0".encode())
        found.update(data)
    return found.hexdigest()[:16]


@cache
def loader_build() -> str:
    """`digest_of` the loader itself, as it was when first asked for. Cost: 20 ms once, then nothing."""
    return digest_of(_FOLDER)
