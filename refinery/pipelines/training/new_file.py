"""A file that a command makes: checked before the work, written once, never over another by accident.

Folders on its way are made, as `refine` and `export` make theirs.
"""

from pathlib import Path

from refinery.loader.storage.open_store import open_store


def check_new(path: str) -> None:
    """Raises ValueError when there is a file of that name, local, gs:// or s3://, already, or where none can be."""
    folder, name = split(path)
    if "://" not in path:
        if not name or Path(path).is_dir():
            raise ValueError(f"output: {path} is a folder; the name of a file is allowed")
        above = next(part for part in Path(path).absolute().parents if part.exists())
        if not above.is_dir():
            raise ValueError(f"output: {path} given, but {above} is a file, not a folder")
    if open_store(folder).size(name) is not None:
        raise ValueError(f"output: {path} exists; choose another name, or give --overwrite to replace it")


def write_new(path: str, data: bytes | Path, overwrite: bool = False) -> None:
    """Write the file. Raises StorageConflict, without overwrite, for one that is there with other bytes."""
    folder, name = split(path)
    store = open_store(folder)
    if isinstance(data, Path):  # it may be larger than memory, which `replace` would take
        if overwrite and store.size(name) is not None:
            store.delete(name)
        store.create(name, data)
    else:
        (store.replace if overwrite else store.create)(name, data)


def split(path: str) -> tuple[str, str]:
    """Folder and name; the working directory for a bare name."""
    folder, _, name = path.rpartition("/")
    return folder or ("/" if path.startswith("/") else "."), name
