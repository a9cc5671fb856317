"""Which check `refinery verify` makes of a location: of a corpus, an export, an adopted corpus or a view."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from refinery.pipelines.checks.kinds import holds_view, is_adopted, is_export

# Whether it is one, and what checks it: imported for such a location alone.
KINDS: tuple[tuple[Callable[[str], bool], str, str], ...] = (
    (is_export, "refinery.pipelines.checks.verify_export", "verify_export"),
    (is_adopted, "refinery.pipelines.adopt.verify_adopted", "verify_adopted"),
    (holds_view, "refinery.pipelines.mix.verify_view", "verify_view"),
)


def check_for(prefix: str, **asked: Any) -> Callable[..., Any]:
    """The check of what is at `prefix`; that of a corpus where it is nothing else. asked: options of `verify`, of a
    corpus alone."""
    for is_kind, module, name in KINDS:
        if is_kind(prefix):
            check: Callable[..., Any] = getattr(import_module(module), name)
            return check
    from refinery.pipelines.verify.verify import verify

    return partial(verify, **asked)


def refuse_unless_corpus(prefix: str) -> None:
    """Raises ValueError for an export, an adopted corpus or a view, which are not checked by shares."""
    if any(is_kind(prefix) for is_kind, *_ in KINDS):
        without = "leave out --shards, --partial, --merge and --runner"
        raise ValueError(f"{prefix}: only a corpus is checked by shares or a job; {without}")
