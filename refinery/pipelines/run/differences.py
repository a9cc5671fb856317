"""What tells two runs apart, in words: recipe keys with both values, input files by name, stages and their files."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from refinery.transforms.core.safe_text import safe

TOKENIZED_FROM = "tokenized_from"  # key of `_run.json` and manifest.json: the texts that `refinery tokenize` read
SHOWN = 5  # differences of two runs
VALUE = 60  # characters of a setting
FILES = 3  # names of files that are shown of each kind


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """All that differs between two `_run.json`, the first few."""
    keys = set(_mapping(theirs.get("recipe"))) | set(ours["recipe"])
    return _joined(
        [
            *_recipe_differences(theirs, ours, keys),
            *input_differences(theirs.get("inputs"), ours["inputs"]),
            *_stage_differences(theirs.get("stages"), ours["stages"]),
            *_environment_differences(theirs, ours),
            *_text_differences(theirs, ours),
        ]
    )


def phase_differences(
    theirs: Mapping[str, Any],
    ours: Mapping[str, Any],
    phase: str,
    sections: Collection[str],
    hashed: Collection[str] = (),
) -> str:
    """What differs in one phase. sections: of the recipe, as far as they decide its result. hashed: those for which
    phase 1 makes hashes, or not."""
    inputs = input_differences(theirs.get("inputs"), ours["inputs"]) if phase == "clean" else []
    before, after = _mapping(theirs.get("stages")).get(phase), ours["stages"][phase]
    for section in hashed if phase == "clean" else ():
        there, here = (bool(_mapping(run.get("recipe")).get(section)) for run in (theirs, ours))
        if there != here:
            inputs.append(f"{section} is {'on' if there else 'off'} there, {'on' if here else 'off'} here")
    found = [
        *inputs,
        *_recipe_differences(theirs, ours, sections),
        *_stage_differences({phase: before} if before is not None else None, {phase: after}),
        *_environment_differences(theirs, ours),
    ]
    # The code of a user's own pass decides what earlier phases hash and find for it.
    return _joined(found or _stage_differences(theirs.get("stages"), ours["stages"]))


def _joined(found: Sequence[str]) -> str:
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return safe("; ".join([*found[:SHOWN], *more])) or "a published corpus that it names differs"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _recipe_differences(theirs: Any, ours: Any, keys: Collection[str]) -> Iterator[str]:
    before = {key: value for key, value in _mapping(theirs.get("recipe")).items() if key in keys}
    after = {key: value for key, value in ours["recipe"].items() if key in keys}
    for path, there, here in leaves(before, after, ""):
        yield f"{path} is {_value(there, here)} there, {_value(here, there)} here"


def _value(value: Any, other: Any) -> str:
    """A setting, short enough for a message. other: the setting it is compared with; a section is on or off."""
    if isinstance(value, Mapping) or (value is None and isinstance(other, Mapping)):
        return "off" if value is None else "on"
    shown = repr(value)
    return shown if len(shown) <= VALUE else f"{shown[: VALUE - 1]}…"


def input_differences(theirs: Any, ours: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about input files that are in one run alone, or with other bytes. theirs, ours: lists of {"source",
    "path", "size", "digest"}."""
    there, here = _files(theirs), _files(ours)
    kinds = {
        "not there": [key for key in here if key not in there],
        "gone": [key for key in there if key not in here],
        "with other bytes": [key for key in here if key in there and here[key] != there[key]],
    }
    found = []
    for what, keys in kinds.items():
        if keys:
            names = ", ".join(safe(path) for _, path in keys[:FILES])
            more = f" and {len(keys) - FILES:,} more" if len(keys) > FILES else ""
            found.append(f"{len(keys):,} input file{'s' * (len(keys) > 1)} {what} ({names}{more})")
    return found


def _files(inputs: Any) -> dict[tuple[str, str], tuple[Any, Any]]:
    """(source, path) -> size and digest."""
    entries = [entry for entry in inputs if isinstance(entry, Mapping)] if isinstance(inputs, list) else []
    return {(str(e.get("source")), str(e.get("path"))): (e.get("size"), e.get("digest")) for e in entries}


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
            for what in sorted({*old, *new}):
                if old.get(what) != new.get(what):
                    found += _stage_difference(str(new["name"]), what, old.get(what), new.get(what))
    return found


def _stage_difference(stage: str, what: str, old: Any, new: Any) -> list[str]:
    if what == "files":
        before, after = (
            {str(file[0]): file[1] for file in files if isinstance(file, list) and len(file) == 2}
            for files in (old if isinstance(old, list) else [], new if isinstance(new, list) else [])
        )
        changed = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
        return [f"the file {safe(path)} of the stage {stage} differs" for path in changed]
    if what == "readers":
        entries = [{str(each["name"]): each for each in readers or ()} for readers in (old, new)]
        names = sorted(name for name in {**entries[0], **entries[1]} if entries[0].get(name) != entries[1].get(name))
        return [f"the reader {safe(name)} of the stage {stage} differs" for name in names]
    if what == "code":
        return [f"the code of the stage {stage} differs"]
    return [f"{what} of the stage {stage} is {old!r} there, {new!r} here"]


def _environment_differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    before = _mapping(theirs.get("environment"))
    for what, here in _mapping(ours.get("environment")).items():
        if before.get(what) != here:
            yield f"{what} is {before.get(what)!r} there, {here!r} here"


def _text_differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about the texts that `refinery tokenize` read there and here."""
    there, here = (_mapping(run.get(TOKENIZED_FROM)) for run in (theirs, ours))
    if there != here:
        yield f"it was made {_made_of(there)} there, {_made_of(here)} here"


def _made_of(texts: Mapping[str, Any]) -> str:
    if not texts:
        return "by `refinery refine` from its sources"
    return (
        f"by `refinery tokenize` of version {texts.get('version')} of the texts {texts.get('name')!s:.100} (manifest "
        f"{texts.get('manifest_sha256')!s:.12})"
    )


def leaves(a: Any, b: Any, path: str) -> list[tuple[str, Any, Any]]:
    """(path, value in a, value in b) of every value of plain data that differs; None where there is none."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted(set(a) | set(b))
        return [leaf for key in keys for leaf in leaves(a.get(key), b.get(key), f"{path}.{key}" if path else key)]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [leaf for i, (x, y) in enumerate(zip(a, b, strict=True)) for leaf in leaves(x, y, f"{path}[{i}]")]
    return [] if a == b else [(path, a, b)]
