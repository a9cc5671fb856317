"""Shards of an earlier attempt that lost documents: found and removed, so that the same command writes them again.

No attempt of this version publishes shards whose counts do not reconcile. Earlier ones did, wrote their report and then
stopped at the manifest, with every later command.
"""

from collections.abc import Callable, Mapping
from typing import Any

from refinery.loader.format.manifest import unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.publish import PUBLISHED_FOLDERS
from refinery.pipelines.run.sums import CountsDisagree

REPORT = "shards/report.json"


def discard_short_shards(
    store: Store, work: Store, check: Callable[[Mapping[str, Any]], None], say: Callable[[str], None]
) -> None:
    """Remove the shards at a prefix and the report that claims them, where `check` says that their counts do not hold.

    store: of a prefix without a manifest. May be killed anywhere, and goes on where it is called again: the report goes
    last. Raises RefineError where files may not be deleted.
    """
    if work.size(REPORT) is None:
        return
    try:
        check(unseal(work.read(REPORT), work.url(REPORT)))
    except CountsDisagree as error:
        problem = str(error).splitlines()[-1].strip()
    else:
        return
    say(f"shards: an earlier attempt lost documents ({problem}); its files are removed and written again")
    pages = (page for folder in PUBLISHED_FOLDERS for page in store.pages(folder))
    if refused := store.delete_many(path for page in pages for path in page):
        raise RefineError(
            f"{store.url(refused[0])} is of an attempt that lost documents and may not be deleted from here; remove "
            f"{', '.join(PUBLISHED_FOLDERS)} below {store.root}, or choose another --output"
        )
    for path in ("shards.json", REPORT):
        work.delete(path)
