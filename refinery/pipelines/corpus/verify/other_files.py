"""Checks of the files other than shards: records, unlisted files, links, and the parts that were kept under work/."""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.document_fields import DEAD_LETTERS, REJECTS, names_of
from refinery.loader.format.listing import FOLDER as LISTINGS
from refinery.loader.format.manifest import MANIFEST, RUN, SPLITS, Manifest, unseal
from refinery.loader.format.packed import FOLDER as PACKED
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.shard_files import read_file
from refinery.loader.format.takedown import FOLDER as TAKEDOWNS
from refinery.loader.storage.store import Store, check_name, size_and_crc32c
from refinery.pipelines.corpus.checks.file_checks import collect
from refinery.pipelines.published.dropped import DROPPED, parse_dropped
from refinery.pipelines.published.dropped import MAX_BYTES as DROPPED_BYTES
from refinery.pipelines.published.statistics.published import MAX_BYTES, STATISTICS, parse_statistics
from refinery.pipelines.run.inputs_read.published import INPUTS, compare_inputs, parse_inputs
from refinery.transforms.statistics.dropped import EXAMPLES
from refinery.transforms.write.lookup.entries import FOLDER as LOOKUP
from refinery.transforms.write.lookup.entries import Hashes, hash_rows

WORK = "work"  # of phase manifests and parts that a run kept

# Folders that may hold no file that the manifest does not list.
FOLDERS = (*SPLITS, PACKED, "tokenizer", "removals", "rejects", "dead_letters", LOOKUP, TAKEDOWNS, LISTINGS)

RECORDS = {folder: names_of(folder) for folder in (DEAD_LETTERS, REJECTS)}
LATER = {REJECTS: ("found",)}  # columns that older corpora do not have


def check_others(store: Store, manifest: Manifest, damaged: set[str]) -> Iterator[str]:
    """All that is beside the shards, in small files and names. damaged: files that have a failure already, and are not
    parsed."""
    listed = {entry.path for entry in manifest.all_files}
    for folder in FOLDERS:
        yield from collect(f"{folder}/", check_unlisted(store, listed, folder))
    yield from collect("links", check_links(store, manifest))
    if STATISTICS not in damaged:
        yield from collect(STATISTICS, check_statistics(store, manifest))
    if DROPPED not in damaged:
        yield from collect(DROPPED, check_dropped(store, manifest))
    if not damaged.intersection((INPUTS, RUN)):
        yield from collect(INPUTS, check_inputs(store, manifest))


def check_inputs(store: Store, manifest: Manifest) -> Iterator[str]:
    """inputs.json, where there is one, is listed, and has the inputs of `_run.json`, whose checksums are the same where
    both know them."""
    if store.size(INPUTS) is None:
        return
    if all(entry.path != INPUTS for entry in manifest.files):
        yield f"{INPUTS}: not in {MANIFEST}"
    size, most = store.size(INPUTS), 2 * (store.size(RUN) or 0) + (1 << 12)
    if size is not None and size > most:  # of the same files, with fewer fields
        yield f"{INPUTS}: {size} bytes found, {most} at most expected beside this {RUN}"
        return
    recorded = unseal(store.read(RUN), RUN)["inputs"]
    yield from compare_inputs(parse_inputs(store.read(INPUTS), INPUTS), recorded)


def check_statistics(store: Store, manifest: Manifest) -> Iterator[str]:
    """statistics.json, where there is one, is listed; what it counts at a point is what the funnel's stage kept, and
    in the shards what the manifest says."""
    entry = next((entry for entry in manifest.files if entry.path == STATISTICS), None)
    if entry is None:
        if store.size(STATISTICS) is not None:
            yield f"{STATISTICS}: not in {MANIFEST}"
        return
    if entry.size > MAX_BYTES:
        yield f"{STATISTICS}: {entry.size} bytes listed, {MAX_BYTES} at most expected"
        return
    statistics = parse_statistics(read_file(store, entry), STATISTICS)
    for point in statistics.points:
        if point.total is None:
            continue
        counted = {value.value: value for value in point.categories[0].values} if point.categories else {}
        rows = [row for row in manifest.funnel if row["stage"] == point.after]
        for unit in ("documents", "bytes"):
            kept, found = sum(row["kept"][unit] for row in rows), getattr(point.total, unit)
            if found != kept:
                yield f"{STATISTICS}: {point.name}: {found} {unit} found, {point.after} kept {kept}"
        for row in rows:
            value = counted.get(row["source"])
            if value is not None and value.documents != row["kept"]["documents"]:
                yield (
                    f"{STATISTICS}: {point.name}: {value.documents} documents of source {row['source']!r} found, "
                    f"{point.after} kept {row['kept']['documents']}"
                )
        tokens = point.total.tokens
        expected = manifest.totals.get("tokens")
        if tokens is not None and tokens != expected:
            yield f"{STATISTICS}: {point.name}: {tokens} tokens found, {expected} in the shards"


def check_dropped(store: Store, manifest: Manifest) -> Iterator[str]:
    """dropped.json, where there is one, is listed; a reason has as many examples as the funnel has documents, at most
    EXAMPLES."""
    entry = next((entry for entry in manifest.files if entry.path == DROPPED), None)
    if entry is None:
        if store.size(DROPPED) is not None:
            yield f"{DROPPED}: not in {MANIFEST}"
        return
    if entry.size > DROPPED_BYTES:
        yield f"{DROPPED}: {entry.size} bytes listed, {DROPPED_BYTES} at most expected"
        return
    lost: Counter[tuple[str, str]] = Counter()
    for row in manifest.funnel:
        for reason, count in row["dropped"].items():
            lost[row["stage"], reason] += count["documents"]
    for each in parse_dropped(read_file(store, entry), DROPPED).reasons:
        most = min(EXAMPLES, lost[each.stage, each.reason])
        if len(each.documents) > most:
            yield f"{DROPPED}: {each.stage}: {each.reason}: {len(each.documents)} documents found, {most} expected"


def check_records_file(
    store: Store, path: str, folder: str, facts: dict[str, Any], hashes: list[Hashes] | None = None
) -> Iterator[str]:
    """Failures of a file of `folder`, whose checksum is right. facts: gets the number of its rows by stage, source and
    reason; complete only where "ends" is false. hashes: gets those of addresses and origins."""
    facts["ends"], keys = True, _keys(folder)
    found: Counter[tuple[Any, ...]] = Counter()
    with store.open(path) as stream, bounded_parquet(stream, path) as (schema, batches):
        columns = tuple(schema.names)
        older = tuple(name for name in RECORDS[folder] if name not in LATER.get(folder, ()))
        if columns not in (RECORDS[folder], older):
            yield f"{path}: columns {schema.names} found, {list(RECORDS[folder])} expected"
            return
        for batch in batches:
            groups = pa.Table.from_batches([batch]).group_by(keys).aggregate([([], "count_all")])
            for row in groups.to_pylist():
                found[tuple(row[key] for key in keys)] += row["count_all"]
            if hashes is not None:
                hashes.append(hash_rows(batch))
    facts |= {"ends": False, "counts": [[*key, count] for key, count in found.items()]}


def _keys(folder: str) -> list[str]:
    return ["stage", "source", "error" if folder == "dead_letters" else "reason"]


def check_records(
    manifest: Manifest, folder: str, files: Sequence[tuple[Sequence[str], Mapping[str, Any]]]
) -> Iterator[str]:
    """dead_letters/ has a row for every dead record in the funnel; rejects/ has rows only for records that it dropped.
    files: (failures, facts) of each, the failures of a damaged one left out.
    """
    outcome, keys = "dead" if folder == "dead_letters" else "dropped", _keys(folder)
    found: Counter[tuple[Any, ...]] = Counter()
    for failures, facts in files:
        yield from failures
        if facts.get("ends", True):
            return
        for *key, count in facts["counts"]:
            found[tuple(key)] += count
    funnel = {
        (entry["stage"], entry["source"], name): count["documents"]
        for entry in manifest.funnel
        for name, count in entry[outcome].items()
    }
    for key in sorted(found.keys() | funnel.keys(), key=repr):
        rows, documents = found[key], funnel.get(key, 0)
        if rows > documents or (outcome == "dead" and rows < documents):
            what = ", ".join(f"{name} {value!r}" for name, value in zip(keys, key, strict=True))
            yield f"{folder}/: {rows} rows of {what} found, the funnel has {documents} {outcome}"


def check_unlisted(store: Store, listed: Collection[str], folder: str) -> Iterator[str]:
    yield from (f"{name}: not in {MANIFEST}" for name in store.list(folder) if name not in listed)


def check_links(store: Store, manifest: Manifest) -> Iterator[str]:
    """No symbolic link leads out of a local corpus or to a folder, which could hide files."""
    place = store.local_path(MANIFEST)
    if place is None:
        return
    root, home = place.parent, Path(os.path.realpath(place.parent))
    names = dict.fromkeys([MANIFEST, *(entry.path for entry in manifest.all_files), *FOLDERS])
    for base, folders, files in (step for folder in FOLDERS for step in os.walk(root / folder)):
        inside = Path(base).relative_to(root)
        names |= dict.fromkeys((inside / name).as_posix() for name in (*folders, *files))
    for name in names:
        target = Path(os.path.realpath(root / name))
        if not target.is_relative_to(home):
            yield f"{name}: leads to {target}, outside of the corpus"
        elif (root / name).is_symlink() and target.is_dir():
            yield f"{name}: a link to the folder {target}, a folder expected"


def phase_manifests(store: Store) -> Iterator[tuple[str, list[Any]]]:
    """Phase manifests that were kept under work/, each with the parts that it lists (paths below work/); none where it
    cannot be read, which `check_phase` reports."""
    try:
        names = store.list(WORK)
    except OSError:
        names = [f"{WORK}/"]
    for name in names:
        if name == f"{WORK}/":
            yield name, []
        elif name.endswith(".json") and name.count("/") == 1:
            try:
                yield name, list(_parts(unseal(store.read(name), name)))
            except Exception:  # noqa: BLE001 - any damage
                yield name, []


def check_phase(store: Store, name: str) -> Iterator[str]:
    """A phase manifest can be read; `work/` stands for the list of them."""
    if name == f"{WORK}/":
        store.list(WORK)
        return
    try:
        unseal(store.read(name), name)
    except (FormatError, OSError) as error:
        yield f"{name}: {error}" if isinstance(error, OSError) else str(error)


def _parts(payload: Any) -> Iterator[Any]:
    """Every entry with a path in the lists under any key "parts", at any depth of JSON; those that lie in another run's
    work location, as all parts of a phase that was taken over, are that run's to check.
    """
    todo = [(payload, False)]
    while todo:
        value, inside = todo.pop()
        if isinstance(value, dict):
            if inside and "path" in value:
                if "root" not in value:
                    yield value
            else:
                todo += [(inner, inside or key == "parts") for key, inner in value.items()]
        elif isinstance(value, list):
            todo += [(inner, inside) for inner in value]


def check_part(store: Store, listed_in: str, part: dict[str, Any]) -> Iterator[str]:
    """A part has the size and checksum that its phase manifest says."""
    name = check_name(f"work/{part['path']}")
    try:
        with store.open(name) as stream:
            size, crc32c = size_and_crc32c(stream)
    except FileNotFoundError:
        yield f"{name}: missing, listed in {listed_in}"
        return
    except OSError as error:
        yield f"{name}: {type(error).__name__}: {error}"
        return
    if (size, crc32c) != (part["size"], part["crc32c"]):
        yield (
            f"{name}: {size} bytes, crc32c {crc32c} found; {part['size']} bytes, crc32c {part['crc32c']} expected "
            f"from {listed_in}"
        )
