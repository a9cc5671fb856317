"""What two runs were given: recipes, stages, libraries, tokenizers, inputs, and each difference between them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.pipelines.corpus.compare.joining.side import Side
from refinery.pipelines.run.differences import leaves


@dataclass(frozen=True)
class Difference:
    """A value that differs. section: what it is of. a, b: plain data, None where a side has none."""

    section: str
    path: str
    a: Any
    b: Any


@dataclass(frozen=True)
class InputFiles:
    """Input files of a source by what became of them. other_bytes: of one path, with other contents; moved: the same
    contents at another path. None where a run does not say what it read."""

    source: str
    only_a: int
    only_b: int
    both: int
    other_bytes: int


def setting_differences(a: Side, b: Side) -> list[Difference]:
    """All differences but those of the input files, in the order in which a run has them."""
    return [
        *_of("lane", {"lane": a.manifest.lane}, {"lane": b.manifest.lane}),
        *_of("recipe", _recipe(a), _recipe(b)),
        *_of("stages", _stages(a), _stages(b)),
        *_of("tokenizer", _tokenizer(a), _tokenizer(b)),
        *_of("versions", a.manifest.versions, b.manifest.versions),
        *_of("environment", _mapping(a.run.get("environment")), _mapping(b.run.get("environment"))),
    ]


def _of(section: str, a: Any, b: Any) -> Iterator[Difference]:
    return (Difference(section, path, one, other) for path, one, other in leaves(a, b, ""))


def _recipe(side: Side) -> dict[str, Any]:
    """The recipe with its sources by name, so that one more does not shift the others."""
    recipe = dict(side.manifest.recipe)
    sources = recipe.get("sources")
    if isinstance(sources, list) and all(isinstance(s, Mapping) and "name" in s for s in sources):
        recipe["sources"] = {str(source["name"]): source for source in sources}
    return recipe


def _stages(side: Side) -> dict[str, Any]:
    """Stage -> its phase, version, and what the run says of its libraries, files and code."""
    found: dict[str, Any] = {
        stage.name: {"phase": stage.phase, "version": stage.version} for stage in side.manifest.stages
    }
    for entries in _mapping(side.run.get("stages")).values():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and "name" in entry:
                rest = {**entry, "files": dict(_pairs(entry.get("files")))}
                rest = {key: value for key, value in rest.items() if key != "name" and value}
                found.setdefault(str(entry["name"]), {}).update(rest)
    return found


def _pairs(files: Any) -> Iterator[tuple[str, str]]:
    """(path, digest) of the files of a stage."""
    return (
        (str(file[0]), str(file[1]))
        for file in (files if isinstance(files, list) else ())
        if isinstance(file, list) and len(file) == 2
    )


def _tokenizer(side: Side) -> dict[str, Any]:
    """What is known of a side's tokenizer; nothing of a corpus of texts."""
    if not side.manifest.has_tokens:
        return {}
    entry = side.manifest.tokenizer
    digest = next((file.sha256 for file in side.manifest.files if file.path == entry.path), None)
    return {"sha256": digest, "vocab_size": entry.vocab_size, "bos_id": entry.bos_id, "eos_id": entry.eos_id}


def same_tokenizer(a: Side, b: Side) -> bool:
    """Whether equal texts have equal tokens on both sides."""
    return _tokenizer(a) == _tokenizer(b) and _tokenizer(a).get("sha256") is not None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def input_files(a: Side, b: Side, moved: Mapping[str, str]) -> Sequence[InputFiles]:
    """Counts by source, of those that have files. moved: of `moved_inputs`."""
    here = a.inputs
    there = {(source, moved.get(path, path)): facts for (source, path), facts in b.inputs.items()}
    sources = dict.fromkeys(source for source, _ in (*here, *there))
    found = []
    for source in sources:
        one, other = ({path for s, path in files if s == source} for files in (here, there))
        both = one & other
        changed = sum(here[source, path] != there[source, path] for path in both)
        found.append(InputFiles(source, len(one - other), len(other - one), len(both), changed))
    return found
