"""What kind of location a prefix is, by its manifest alone: an export, an adopted corpus, a view; else a corpus."""

from refinery.loader.format.manifest import MAX_MANIFEST
from refinery.loader.format.provenance import ADOPTED as LANE
from refinery.loader.format.view import is_view
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.export_manifest import is_export, manifest_name

EXPORT, ADOPTED, VIEW, CORPUS = "export", "adopted", "view", "corpus"


def kind_of(location: str | Store) -> str:
    """EXPORT, ADOPTED or VIEW where one is published, sound or not; CORPUS for all else. Cost: a read of manifest.json.
    Never raises for what is there."""
    try:
        store = open_store(location) if isinstance(location, str) else location
        head = store.read(manifest_name(store), 0, MAX_MANIFEST)
    except (OSError, ValueError):
        return CORPUS
    if is_export(head):
        return EXPORT
    if is_view(head):
        return VIEW
    return ADOPTED if f'\n "lane": "{LANE}"'.encode() in head else CORPUS
