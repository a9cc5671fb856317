"""Whom a prefix belongs to: `_run.json` says. Claiming it, and refusing it."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from refinery.loader.format.manifest import MANIFEST, RUN, SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import StorageConflict, Store
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import TOKENIZED_FROM, differences
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.fingerprint import cleaning_fingerprint, describe_environment, describe_stages
from refinery.pipelines.run.inputs_read.text_fields import KEY as TEXT_FIELDS
from refinery.pipelines.run.phases import OWN
from refinery.transforms.core.names import PHASES

NONE_FOUND: Mapping[str, str] = MappingProxyType({})


def describe_run(
    recipe: Recipe,
    inputs: Sequence[Mapping[str, Any]],
    fingerprints: Mapping[str, str],
    digest: Callable[[str], str] | None = None,
    text_fields: Mapping[str, str] = NONE_FOUND,
) -> dict[str, Any]:
    """What `_run.json` holds: everything that decides the corpus, and nothing that differs from run to run. digest: as
    of `describe_stages`. text_fields: those of the recipe's sources that the run found itself."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "refinery-run",
        "name": recipe.name,
        "fingerprint": fingerprints["shards"],
        "phases": dict(fingerprints),
        "recipe": recipe.deciding(),
        "inputs": list(inputs),
        "stages": {phase: list(describe_stages(recipe, phase, digest)) for phase in PHASES},
        "cleaning": cleaning_fingerprint(recipe, digest),
        "environment": describe_environment(),
        **({TEXT_FIELDS: dict(text_fields)} if text_fields else {}),
    }


def claim(store: Store, identity: Mapping[str, Any], advice: str) -> None:
    """Write `_run.json`, or see that it is ours already. Raises what `owned` raises."""
    if owned(store, identity, advice):
        return
    try:
        store.create(RUN, seal(identity))
    except StorageConflict:  # somebody else was faster: compare with what they wrote
        owned(store, identity, advice)


def owned(store: Store, identity: Mapping[str, Any], advice: str) -> bool:
    """Whether a location is this run's already; False where it is free.

    Raises RefineError, ending in `advice`, when it belongs to another run or is not a folder.
    """
    if "://" not in store.root and Path(store.root).exists() and not Path(store.root).is_dir():
        raise RefineError(f"{store.root} is a file, not a folder. {advice}")
    if store.size(RUN) is None:
        if store.size(MANIFEST) is not None:
            raise RefineError(f"{store.root} holds a {MANIFEST} but no {RUN}. {advice}")
        if name := foreign_file(store):
            raise RefineError(f"{store.root} holds {name!r:.200} but no run of Refinery; choose a new or empty folder")
        return False
    theirs = unseal(store.read(RUN), store.url(RUN))
    if any(theirs.get(key) != identity.get(key) for key in ("fingerprint", TOKENIZED_FROM)):
        raise RefineError(
            f"{store.root} belongs to another run and stays as it is: {differences(theirs, identity)}. {advice}"
        )
    return True


def foreign_file(store: Store) -> str:
    """A file that no run has written, below a location that no run has claimed; "" where there is none.

    Work files do not count: a job on other machines may end long after its prefix was emptied. Neither do hidden files:
    what desktops and version control leave in folders, and temporary files of a command that was killed. Cost: a
    listing up to the first one.
    """
    if "://" in store.root:
        return next((name for name in store.list() if not _is_work(name)), "")
    for folder, folders, files in os.walk(store.root, onerror=_not_listed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        # A link to a folder is not followed, and is somebody's: what is written below it would land elsewhere.
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in sorted((*files, *links)):
            path = os.path.relpath(os.path.join(folder, name), store.root)
            if not name.startswith(".") and (name in links or not _is_work(path)):
                return path
    return ""


def _is_work(name: str) -> bool:
    """Whether a run writes a file of this name into its work location, or into the one below its prefix."""
    return OWN.fullmatch(name.removeprefix("work/")) is not None


def _not_listed(error: OSError) -> None:
    """A folder that cannot be listed may hold anything; one that is not there holds nothing."""
    if not isinstance(error, FileNotFoundError):
        raise error


def work_places(reuse: str) -> list[str]:
    """Where the phases of `reuse` may be: below it, if it is a prefix, or in it. Nowhere for ""."""
    return [f"{reuse.rstrip('/')}/work", reuse] if reuse else []


def location(url: str) -> str:
    """A location in a form that can be compared: absolute, links resolved, without a trailing slash."""
    return url.rstrip("/") if "://" in url else os.path.realpath(url)
