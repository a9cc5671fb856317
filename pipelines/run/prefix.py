"""Whom a prefix belongs to: `_run.json` says. Claiming it, refusing it, and taking over phases of another prefix."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from refinery.loader.format.manifest import MANIFEST, RUN, SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageConflict, Store
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import describe_stages
from refinery.pipelines.run.phases import read_phase, reuse_phase
from refinery.transforms.core.lane import PHASES


class RefineError(RuntimeError):
    """A run that must not go on; the message is one or a few lines for the user."""


def describe_run(
    recipe: Recipe, inputs: Sequence[Mapping[str, Any]], fingerprints: Mapping[str, str]
) -> dict[str, Any]:
    """What `_run.json` holds: everything that decides the corpus, and nothing that differs from run to run."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "refinery-run",
        "name": recipe.name,
        "fingerprint": fingerprints["shards"],
        "phases": dict(fingerprints),
        "recipe": recipe.deciding(),
        "inputs": list(inputs),
        "stages": {phase: list(describe_stages(recipe, phase)) for phase in PHASES},
    }


def claim(store: Store, identity: Mapping[str, Any], advice: str) -> None:
    """Write `_run.json`, or see that it is ours already.

    Raises RefineError, ending in `advice`, when the location belongs to another run or is no folder.
    """
    if "://" not in store.root and Path(store.root).exists() and not Path(store.root).is_dir():
        raise RefineError(f"{store.root} is a file, not a folder. {advice}")
    if store.size(RUN) is None:
        if store.size(MANIFEST) is not None:
            raise RefineError(f"{store.root} holds a {MANIFEST} but no {RUN}. {advice}")
        try:
            store.create(RUN, seal(identity))
            return
        except StorageConflict:
            pass  # somebody else was faster: compare with what they wrote
    theirs = unseal(store.read(RUN), store.url(RUN))
    if theirs["fingerprint"] != identity["fingerprint"]:
        raise RefineError(
            f"{store.root} belongs to another run and stays as it is: {differences(theirs, identity)}.\n{advice}"
        )


def take_over(work: str, reuse: str, fingerprints: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Point from `work` at the finished phases of `reuse` (a prefix, or its work location) that have our fingerprints.

    Raises RefineError when `reuse` holds no finished phase.
    """
    other = next((place for place in work_places(reuse) if finished(place)), "")
    if not other:
        raise RefineError(
            f"--reuse {reuse}: no finished phase there; name a prefix whose work/ was kept, or its --work location"
        )
    other = location(other)  # the pointer must hold from any folder
    for name in ("clean", "dedup"):
        phase = read_phase(other, name, fingerprints[name])
        if phase is None:
            say(f"reuse: {name} differs in recipe, inputs or code, so it runs again")
            return
        if read_phase(work, name, fingerprints[name]) is None:
            reuse_phase(work, phase)
            say(f"reuse: {name} taken over from {reuse}")


def work_places(reuse: str) -> list[str]:
    """Where the phases of `reuse` may be: below it, if it is a prefix, or in it. Nowhere for ""."""
    return [f"{reuse.rstrip('/')}/work", reuse] if reuse else []


def location(url: str) -> str:
    """A location in a form that can be compared: absolute, links resolved, without a trailing slash."""
    return url.rstrip("/") if "://" in url else os.path.realpath(url)


def finished(work: str) -> bool:
    """Whether a work location holds a finished first phase."""
    return open_store(work).size("clean.json") is not None


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """What tells two runs apart, in words: recipe keys with both values, inputs, code, libraries."""
    found = [
        f"{path} is {before!r} there, {after!r} here"
        for path, before, after in _leaves(theirs.get("recipe"), ours["recipe"], "")
    ]
    if theirs.get("inputs") != ours["inputs"]:
        found.append("the input files differ")
    found += _stage_differences(theirs.get("stages"), ours["stages"])
    return "; ".join(found[:5]) or "Python's version differs"


def _stage_differences(theirs: Any, ours: Mapping[str, Any]) -> list[str]:
    """Sentences about stages: what their declarations say there and here."""
    if not isinstance(theirs, Mapping):
        return ["the stages are not recorded there"]
    found = []
    for phase, entries in ours.items():
        before = [entry for entry in theirs.get(phase, []) if isinstance(entry, Mapping) and "name" in entry]
        names = [str(entry["name"]) for entry in before], [entry["name"] for entry in entries]
        if names[0] != names[1]:
            found.append(f"{phase} has the stages {', '.join(names[0])} there, {', '.join(names[1])} here")
            continue
        for old, new in zip(before, entries, strict=True):
            found += [
                f"{what} of the stage {new['name']} is {old.get(what)!r} there, {new[what]!r} here"
                if what in ("version", "schemes", "libraries")
                else f"{'a file' if what == 'files' else 'the code'} of the stage {new['name']} differs"
                for what in new
                if old.get(what) != new[what]
            ]
    return found


def _leaves(a: Any, b: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted(set(a) | set(b))
        return [leaf for key in keys for leaf in _leaves(a.get(key), b.get(key), f"{path}.{key}" if path else key)]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [leaf for i, (x, y) in enumerate(zip(a, b, strict=True)) for leaf in _leaves(x, y, f"{path}[{i}]")]
    return [] if a == b else [(path, a, b)]
