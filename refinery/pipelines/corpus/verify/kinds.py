"""Which check `refinery verify` makes of a location: of a corpus, an export, an adopted corpus or a view."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from refinery.loader.format.manifest import MANIFEST, RUN
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.kinds import ADOPTED, EXPORT, VIEW, kind_of
from refinery.pipelines.corpus.export.export_manifest import HIDDEN
from refinery.pipelines.published.outputs import ACCOUNTS

# What checks a kind: imported for such a location alone.
CHECKS: Mapping[str, tuple[str, str]] = {
    EXPORT: ("refinery.pipelines.corpus.checks.verify_export", "verify_export"),
    ADOPTED: ("refinery.pipelines.corpus.adopt.verify_adopted", "verify_adopted"),
    VIEW: ("refinery.pipelines.corpus.mix.verify_view", "verify_view"),
}


def check_for(prefix: str, **asked: Any) -> Callable[..., Any]:
    """The check of what is at `prefix`; that of a corpus where it is nothing else. asked: options of `verify`, of a
    corpus alone."""
    if found := CHECKS.get(kind_of(prefix)):
        module, name = found
        check: Callable[..., Any] = getattr(import_module(module), name)
        return check
    from refinery.pipelines.corpus.verify.verify import verify

    return partial(verify, **asked)


def refuse_nothing(prefix: str) -> None:
    """Raises ValueError where nothing of Refinery is, in the words of every command. Cost: two requests."""
    store = open_store(prefix)
    try:
        nothing = all(store.size(name) is None for name in (MANIFEST, HIDDEN, RUN))
    except NotADirectoryError:
        nothing = True
    if nothing and open_store(prefix.rstrip("/") + ACCOUNTS).size(MANIFEST) is not None:
        raise ValueError(f"{prefix}: the accounts of these files are in {prefix.rstrip('/')}{ACCOUNTS}; name that")
    if nothing:
        Corpus(store)  # raises FormatError, which says what is missing


def refuse_unless_corpus(prefix: str) -> None:
    """Raises ValueError for an export, an adopted corpus or a view, which are not checked by shares."""
    if kind_of(prefix) in CHECKS:
        without = "leave out --shards, --partial, --merge and --runner"
        raise ValueError(f"{prefix}: only a corpus is checked by shares or a job; {without}")
