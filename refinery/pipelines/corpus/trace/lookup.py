"""Find rows in the Parquet files of a corpus by url, id or origin, reading as little of them as possible."""

from collections.abc import Iterator, Mapping
from typing import Any

from refinery.loader.errors import FormatError, written_by_a_run
from refinery.loader.format.parquet.batches import stored_table
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.published.find_rows import Row, Wanted, find_rows
from refinery.pipelines.published.scan import Say, scan, silent
from refinery.pipelines.run.phases import Phase

DOCUMENTS = ("id", "url", "source", "origin")


def find_documents(clean: Phase, dedup: Phase, wanted: Wanted, say: Say = silent) -> Iterator[Row]:
    """Matching cleaned documents in the work location that deduplication kept."""
    from refinery.transforms.dedup.verdicts import part_name

    verdicts = open_store(dedup.root)
    names = {part_name(part["path"]): part["path"] for part in dedup.parts("verdicts")}

    def look(part: dict[str, Any]) -> list[Row]:
        found = list(find_rows(open_store(clean.root_of(part)), part["path"], wanted, DOCUMENTS))
        judged = names.get(part_name(part["path"]))
        if found and judged:
            removed = stored_table(verdicts, judged, ["removed"])["removed"]
            if len(removed) <= found[-1][0]:
                raise FormatError(f"{verdicts.url(judged)}: {len(removed)} rows found, one of each document expected")
            found = [(number, row) for number, row in found if not removed[number].as_py()]
        return [row for _, row in found]

    for rows in scan(look, clean.parts("documents"), "parts of work/documents", say):
        yield from rows


def input_files(run: Mapping[str, Any]) -> dict[str, list[str]]:
    """Source -> the files that were read, as _run.json lists them."""
    files: dict[str, list[str]] = {}
    with written_by_a_run("_run.json: its inputs are"):
        for entry in run.get("inputs", ()):
            files.setdefault(str(entry["source"]), []).append(str(entry["path"]))
    return files
