"""What the path of a source file says about where the file comes from."""

import re

from refinery.transforms.core.document import Document

VENDORED = re.compile(
    r"(?:^|/)(?:vendors?|vendored|third[-_]?party|3rd[-_]?party|extern(?:al)?s?|deps|bundled|node_modules|bower_components"
    r"|jspm_packages|godeps|pods|site-packages|dist-packages)/",
    re.IGNORECASE,
)
"""GitHub linguist's vendor.yml, what of it is not for one library."""


def path_of(doc: Document) -> str:
    """The path of a file in its repository: its note `path`, else its url."""
    return str(doc.meta.get("path") or doc.url)


def folders_above(path: str) -> int:
    """How many folders a path has above the file.

    >>> folders_above("src//a/x.c")
    2
    """
    return max(0, sum(1 for name in path.split("/") if name not in ("", ".")) - 1)
