"""Which check `refinery verify` makes of a location: of a corpus, an export, an adopted corpus or a view."""

from collections.abc import Callable
from functools import partial
from typing import Any

from refinery.pipelines.adopt.verify_adopted import is_adopted, verify_adopted
from refinery.pipelines.checks.verify_export import is_export, verify_export
from refinery.pipelines.mix.inspect_view import holds_view
from refinery.pipelines.mix.verify_view import verify_view
from refinery.pipelines.verify.verify import verify

KINDS: tuple[tuple[Callable[[str], bool], Callable[..., Any]], ...] = (
    (is_export, verify_export),
    (is_adopted, verify_adopted),
    (holds_view, verify_view),
)


def check_for(prefix: str, **asked: Any) -> Callable[..., Any]:
    """The check of what is at `prefix`; that of a corpus where it is nothing else. asked: options of `verify`, of a
    corpus alone."""
    return next((check for is_kind, check in KINDS if is_kind(prefix)), partial(verify, **asked))


def refuse_unless_corpus(prefix: str) -> None:
    """Raises ValueError for an export, an adopted corpus or a view, which are not checked by shares."""
    if any(is_kind(prefix) for is_kind, _ in KINDS):
        without = "leave out --shards, --partial, --merge and --runner"
        raise ValueError(f"{prefix}: only a corpus is checked by shares or a job; {without}")
