"""A request for a page of a finished run, and which pages there are.

Each is imported when it is first asked for: some import all stages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from refinery.pipelines.corpus.browse.pages.frame import Frame
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened


@dataclass(frozen=True)
class Visit:
    """Who asks for what. query: the fields of the address. sample: documents of each half of a sample."""

    frame: Frame
    run: LookedAt
    opened: Opened
    query: Mapping[str, str]
    sample: int


Page = Callable[[Visit], str]

PAGES = {  # path below a run -> file here, function
    "search": ("search", "search_page"),
    "documents": ("lists", "documents_page"),
    "document": ("document", "document_page"),
    "clusters": ("clusters", "clusters_page"),
    "cluster": ("clusters", "cluster_page"),
    "hosts": ("hosts", "hosts_page"),
    "thresholds": ("thresholds", "thresholds_page"),
    "threshold": ("thresholds", "threshold_page"),
}


def load(name: str) -> Page:
    """The page of that path."""
    file, function = PAGES[name]
    found: Page = getattr(import_module(f"{__package__}.{file}"), function)
    return found
