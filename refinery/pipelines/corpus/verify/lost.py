"""Evidence that a run lost something between its workers: copies that were counted and are not in removals/, or the
other way round, and input files that nobody read. The local runner of earlier versions could lose both above 2 GB of
text (docs/beam-data-loss.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import RUN, Manifest, unseal
from refinery.loader.format.removals import FOLDER
from refinery.loader.storage.store import Store
from refinery.pipelines.published.damaged_files import READ, DamagedFile
from refinery.pipelines.run.inputs_read.published import INPUTS, parse_inputs
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.registry import format_of, readers

SHOWN = 3  # files that are named


def check_copies(manifest: Manifest, others: int, counted: int, held_back: int, later: int) -> Iterator[str]:
    """Failures where the documents that those in the corpus stand for are not those that were removed in their favour.

    others: what `copies` of all documents in the corpus count beside these. counted: rows of removals/ that are counted
    so, all but captures of one address and what was removed in favour of a reference corpus. held_back: the latter.
    later: documents kept instead that later stages dropped. The copies of these two are in no shard, so with them only
    the bound is checked. Nothing is said after takedowns, and where a later stage makes several documents of one, which
    all have its copies.
    """
    late = {stage.name for stage in manifest.stages if stage.phase == "shards"}
    rows = [row for row in manifest.funnel if row["stage"] in late]
    if manifest.takedowns or any(row["in"]["documents"] != _out(row) for row in rows):
        return
    is_exact = not held_back and not later
    if others > counted or (is_exact and others < counted):
        expected = f"{counted:,}" if is_exact else f"{counted:,} at most"
        yield (
            f"{FOLDER}/: documents in the corpus count {others:,} copies, {expected} expected from the rows of "
            "removals; the run lost some of either, and may have missed copies that are still in the corpus; "
            "run phase 2 again in a new prefix"
        )


def _out(row: Mapping[str, Any]) -> int:
    counts = row["kept"], *row["dropped"].values(), *row["dead"].values()
    return sum(int(count["documents"]) for count in counts)


def unread_inputs(store: Store, manifest: Manifest, damaged: Sequence[DamagedFile]) -> list[str]:
    """What is to be said of input files that the run may not have read, a line each; nothing where it read all.

    A file of a format that is read from end to end has a checksum in inputs.json, unless a reader gave up at damage,
    which is a dead letter, or jumped over what lies between two frames of Zstandard or LZ4. damaged: files with dead
    letters.
    """
    recorded = unseal(store.read(RUN), RUN).get("inputs") or []
    if not recorded or all(row["stage"] != READ for row in manifest.funnel):
        return []
    if all(entry.path != INPUTS for entry in manifest.files):
        return [
            f"no {INPUTS}: the version that made this corpus did not note which files it had read, so a lost one would "
            "not be seen; `refinery audit` reads the inputs and compares their records with the funnel"
        ]
    formats = {source["name"]: source for source in manifest.recipe.get("sources", [])}
    unread = [
        entry["path"]
        for entry in parse_inputs(store.read(INPUTS), INPUTS)
        if not entry["crc32c"] and _is_read_whole(entry["path"], formats.get(entry["source"], {}))
    ]
    if unread:
        known = {file.path for file in damaged}
        unread = [path for path in unread if printable(path) not in known]
    if not unread:
        return []
    named = ", ".join(f"{path!r:.200}" for path in unread[:SHOWN]) + (", …" if len(unread) > SHOWN else "")
    return [
        f"{INPUTS}: {len(unread):,} input files were not read from end to end, and have no dead letter: {named}; if "
        "they are not in several frames with something between them, the run lost them; `refinery audit` tells"
    ]


def _is_read_whole(path: str, source: dict[str, Any]) -> bool:
    """Whether a reader of this file sums all of it. source: as the recipe has it."""
    form = str(source.get("format", "auto"))
    if form == "auto":
        try:
            form = format_of(path, "")
        except ValueError:
            return False
    # A reader of the user's own is not imported because a corpus names it: whether it reads all of a file is not known.
    return form in readers() and not readers()[form].in_pieces and source.get("cap") is None
