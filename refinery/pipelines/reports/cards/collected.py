"""What the names of input files say of where and when they were collected."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

HUB = "hf://datasets/"
CRAWL = re.compile(r"CC-(?:MAIN|NEWS)(?:-\d{4}-\d{2})?")  # of Common Crawl: crawl-data/CC-MAIN-2024-10/segments/…
# CC-MAIN-20240220211055-20240221001055-00000.warc.gz: the first and the last capture of a file, in UTC.
PERIOD = re.compile(r"-((?:19|20)\d{2})(0[1-9]|1[0-2])\d{8}-((?:19|20)\d{2})(0[1-9]|1[0-2])\d{8}-")
ARCHIVES = ("warc", "wet", "arc")
UNKNOWN = "other"


@dataclass
class Collection:
    """Inputs of one kind of one source. kind: a data set of the hub, "Common Crawl", or "other". crawls: names that the
    files' names have. first, last: months of the captures that these name, YYYY-MM, "" if none does."""

    source: str
    kind: str
    files: int = 0
    bytes: int = 0
    crawls: set[str] = field(default_factory=set)
    first: str = ""
    last: str = ""
    archives: int = 0


def collections(inputs: Iterable[Mapping[str, Any]]) -> list[Collection]:
    """Inputs by source and by what their names say, in the order of the inputs."""
    found: dict[tuple[str, str], Collection] = {}
    for entry in inputs:
        path, source = str(entry["path"]), str(entry["source"])
        crawls = CRAWL.findall(path)
        kind = hub_name(path) or ("Common Crawl" if crawls else UNKNOWN)
        each = found.setdefault((source, kind), Collection(source, kind))
        each.files += 1
        each.bytes += entry["size"]
        each.archives += any(f".{ending}" in path.lower() for ending in ARCHIVES)
        each.crawls.update(crawls)
        for first_year, first_month, last_year, last_month in PERIOD.findall(path):
            first, last = f"{first_year}-{first_month}", f"{last_year}-{last_month}"
            each.first = min(each.first or first, first)
            each.last = max(each.last, last)
    return list(found.values())


def hub_name(path: str) -> str:
    """The data set of a hub's address, with its revision; "" for others.

    >>> hub_name("hf://datasets/org/name@0123abc/data/0.parquet")
    'org/name@0123abc'
    """
    if not path.startswith(HUB):
        return ""
    parts = path.removeprefix(HUB).split("/")
    return "/".join(parts[: 1 if "@" in parts[0] else 2])
