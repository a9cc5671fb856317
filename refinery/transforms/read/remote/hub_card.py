"""The card of a data set of the hub, README.md: which files its configurations and their splits have.

A stranger wrote it. Its front matter is looked for in the first megabyte, and only the part that names files is read,
by the reader that recipes have: bounded in values and depth, aliases counted.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import meant

CARD = "README.md"
MAX_CARD = 1 << 20  # bytes of a card that are looked at
MAX_PATTERNS = 10_000  # of one configuration
SHOWN = 12  # names in a message
SHOWN_CHARS = 60

_CONFIGS = re.compile(r"([\"']?)configs\1[ \t]*:")
Config = Mapping[str, Any]


def configs_of(card: bytes, name: str) -> list[Config]:
    """`configs` of a data set's card; [] where it has none. name: of the data set. Raises ValueError."""
    front = configs_text(card[:MAX_CARD].decode("utf-8-sig", "replace"))
    try:
        data = load_yaml(front, f"the card of {name}")
    except RecipeError as error:
        raise ValueError(f"{safe(str(error))}; name the files of {name} themselves") from None
    configs = data.get("configs") if isinstance(data, dict) else None
    return [entry for entry in configs if isinstance(entry, dict)] if isinstance(configs, list) else []


def configs_text(card: str) -> str:
    """The lines of the front matter that are the value of `configs`, with its key; "" for none.

    The rest may be megabytes of a data set's features, and keys that are numbers. Cost: linear.
    """
    lines = iter(card.splitlines())
    if next(lines, "").rstrip() != "---":
        return ""
    front: list[str] = []
    inside = False
    for line in lines:
        if line.rstrip() == "---":
            return "\n".join(front)
        if line[:1] not in ("", " ", "\t", "-", "#", "]", "}"):  # a key of the front matter begins
            inside = bool(_CONFIGS.match(line))
        if inside:
            front.append(line)
    return ""  # the front matter does not end


def choose_config(name: str, configs: Sequence[Config], config: str) -> Config:
    """The configuration of that name; for "" the only one, the one marked as default, or the one of that name. Raises
    ValueError for none."""
    names = [str(entry.get("config_name", "default")) for entry in configs]
    if config:
        matching = [entry for entry, known in zip(configs, names, strict=True) if known == config]
    else:
        matching = [entry for entry in configs if entry.get("default")] if len(configs) > 1 else list(configs)
        matching = matching or [entry for entry, known in zip(configs, names, strict=True) if known == "default"]
    if not matching:
        raise ValueError(f"config: {config!r} given, {name} has {shown(names)}{meant(config, names)}")
    return matching[0]


def patterns_of(name: str, config: Config, split: str) -> list[str]:
    """The paths and globs of the splits that the glob `split` matches. Raises ValueError for none, and for too many."""
    folder = str(config.get("data_dir") or "").strip("/")
    named = list(splits_of(config.get("data_files")))
    found = [f"{folder}/{path}" if folder else path for known, path in named if fnmatch.fnmatchcase(known, split)]
    if not found:
        names = sorted({known for known, _ in named})
        raise ValueError(f"split: {split!r} given, {name} has {shown(names)}{meant(split, names)}")
    if len(found) > MAX_PATTERNS:
        raise ValueError(f"the card of {name} names {len(found)} files and patterns; give the files themselves")
    return found


def shown(names: Sequence[str]) -> str:
    """Some of a stranger's names, for a message."""
    some = ", ".join(safe(name[:SHOWN_CHARS]) for name in names[:SHOWN])
    return some + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def splits_of(data_files: Any) -> Iterator[tuple[str, str]]:
    """(split, path) pairs of a card's `data_files`, in any of its forms."""
    if isinstance(data_files, str):
        yield "train", data_files
    elif isinstance(data_files, Mapping):
        for split, paths in data_files.items():
            yield from ((str(split), path) for path in _texts(paths))
    elif isinstance(data_files, list):
        for entry in data_files:
            if isinstance(entry, Mapping):
                split = str(entry.get("split", "train"))
                yield from ((split, path) for path in _texts(entry.get("path", [])))
            else:
                yield "train", str(entry)


def _texts(paths: Any) -> list[str]:
    """A path, or a list of them; nothing of anything else."""
    return [paths] if isinstance(paths, str) else [str(path) for path in paths] if isinstance(paths, list) else []
