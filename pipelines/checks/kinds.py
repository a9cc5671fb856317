"""What kind of location a prefix is, by its manifest alone: an export, an adopted corpus, a view; else a corpus."""

from refinery.loader.format.manifest import MANIFEST
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.view import is_view
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.export.export_format import KIND


def is_export(place: str) -> bool:
    """Whether a location holds a finished export, sound or not."""
    try:
        return f'"kind": "{KIND}"'.encode() in open_store(place).read(MANIFEST)
    except (OSError, ValueError):
        return False


def is_adopted(prefix: str) -> bool:
    """Whether a location holds an adopted corpus, sound or not."""
    try:
        return f'\n "lane": "{ADOPTED}"'.encode() in open_store(prefix).read(MANIFEST)
    except (OSError, ValueError):
        return False


def holds_view(prefix: str) -> bool:
    """Whether a location holds a view, sound or not."""
    try:
        return is_view(open_store(prefix).read(MANIFEST))
    except (OSError, ValueError):
        return False
