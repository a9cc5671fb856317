"""What is different on the site from the same pages in the repository. mkdocs calls the functions `on_…`.

Files of the repository that pages link to (OTHERS) are pages, too, and links follow them there; a link to any other
file of the repository becomes its name. Comments (the marks of generated tables) are left out: a table right below one
would be text.
"""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
OTHERS = {  # file of the repository -> page of the site
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "terraform/README.md": "terraform.md",
}
PAGES = {"README.md": "index.md", **OTHERS}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
HOST = re.compile(r"[a-z]+:")


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are not in docs/."""
    for path, page in OTHERS.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page without its comments, its links as they are on the site."""
    sources = {name: path for path, name in OTHERS.items()}
    folder = posixpath.dirname(sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))
    replace = link_from(folder, posixpath.dirname(page.file.src_uri))
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(replace, COMMENT.sub("", part)) for part in parts)


def link_from(folder: str, site_folder: str) -> Callable[[re.Match[str]], str]:
    """What a link becomes on a page that is in `folder` of the repository, and in `site_folder` of the site."""

    def replace(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        if HOST.match(target):
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        there = PAGES.get(path) or path.removeprefix("docs/")
        if path not in PAGES and there == path:
            return words if words.startswith("`") else f"{words} (`{path}`)"
        return f"[{words}]({posixpath.relpath(there, site_folder or '.')}{anchor})"

    return replace
