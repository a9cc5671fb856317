"""What a stream is given: a corpus or a view."""

from refinery.loader.format.manifest import IsView
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.pace import FIRST
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store
from refinery.loader.view.opened import OpenedCorpus
from refinery.loader.view.opened_view import OpenedView


def open_readable(store: Store, remote: RemoteParams | None) -> OpenedCorpus:
    """The corpus or view at `store`; remote: how a view's corpora are read, if they are remote. Raises FormatError."""
    if isinstance(store, RemoteStore):  # they are there when the manifest and listings have been read
        store.open_ahead(FIRST)
    try:
        return OpenedCorpus(store)
    except IsView:
        return OpenedView(store, remote)
