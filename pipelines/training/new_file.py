"""A file that a command makes: checked before the work, written once, never over another by accident."""

from refinery.loader.storage.open_store import open_store


def check_new(path: str) -> None:
    """Raises ValueError when there is a file of that name, local or gs://, already."""
    folder, name = split(path)
    if open_store(folder).size(name) is not None:
        raise ValueError(f"output: {path} exists; choose another name, or give --overwrite to replace it")


def write_new(path: str, data: bytes, overwrite: bool = False) -> None:
    """Write the file. Raises StorageConflict, without overwrite, for one that is there with other bytes."""
    folder, name = split(path)
    store = open_store(folder)
    (store.replace if overwrite else store.create)(name, data)


def split(path: str) -> tuple[str, str]:
    """Folder and name; the working directory for a bare name."""
    folder, _, name = path.rpartition("/")
    return folder or ("/" if path.startswith("/") else "."), name
