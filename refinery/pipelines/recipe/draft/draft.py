"""`refinery init`: a commented recipe from what files hold, and the commands to run next.

Files are listed (list_files.py), put together (groups.py), looked into (survey.py) and written down (write_recipe.py).
Nothing that they hold is executed; what cannot be read costs a line.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from refinery.pipelines.recipe.draft.groups import (
    ARCHIVE,
    CODE,
    REFUSED,
    UNKNOWN,
    Group,
    by_folder,
    endings_of,
    group_files,
    named_one_by_one,
    paths_of,
    sniffed,
)
from refinery.pipelines.recipe.draft.list_files import MOST_NAMES, Listed, list_all, shown
from refinery.pipelines.recipe.draft.survey import Survey, survey
from refinery.pipelines.recipe.draft.write_recipe import SourceDraft, recipe_text
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.transforms.core.data_text.plain_yaml import load_yaml
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.remote.files import Found, is_remote
from refinery.transforms.read.remote.globs import fixed_beginning

NOT_READ = {  # kinds of files that become no source -> what is said of them
    ARCHIVE: "archives, which `refinery acquire git` reads (docs/acquisition.md)",
    CODE: "files of source code, which `refinery acquire git` reads from a repository (docs/acquisition.md)",
    REFUSED: "files without pages (.wat): left out",
    UNKNOWN: "files with unknown endings: left out; set `format` to read them",
}


@dataclass
class Draft:
    """A recipe that was drafted. problems: lines about what was not read or is to be decided. commands: what to run
    next, in order. is_cut: a folder has more names than were read."""

    text: str = ""
    sources: list[SourceDraft] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    is_cut: bool = False


def draft_recipe(
    arguments: Sequence[str], output: str, name: str = "", progress: Callable[[str], None] = lambda line: None
) -> Draft:
    """A recipe for these files, to be written to `output`. name: of the corpus (default: from the first source).

    Raises ValueError, one line, where nothing of them can become a source.
    """
    draft = Draft()
    listings = []
    for listed in list_all(arguments):
        if len(listed.files) > 1:
            progress(f"{shown(listed.argument)}: {len(listed.files):,} files are listed")
        draft.problems += listed.problems
        if listed.is_cut:
            draft.is_cut = True
            draft.problems.append(f"{shown(listed.argument)}: more than {MOST_NAMES:,} names; only the first were read")
        listings.append(listed)
    surveys: list[tuple[Survey, Listed]] = []
    raw_code: list[Group] = []
    for listed in named_one_by_one(listings):
        for group in map(sniffed, group_files(listed)):
            if group.kind in NOT_READ:
                draft.problems.append(_not_read(group))
                raw_code += [group] if group.kind in (CODE, ARCHIVE) else []
            else:
                surveys += [(found, listed) for found in survey_apart(group, progress)]
    clones = [clone for listed in listings for clone in listed.repositories]
    _take_sources(draft, surveys)
    if not draft.sources and not (clones or raw_code):
        raise ValueError(
            "\n".join([*draft.problems, "no file holds documents; docs/sources.md has the formats that are allowed"])
        )
    is_code = not draft.sources or all(source.survey.is_code for source in draft.sources if source.survey)
    if clones and draft.sources:
        draft.problems.append(
            f"{_several(clones)}: source code has its own lane and needs its own recipe: {_acquire(clones)}"
        )
    if not draft.sources:
        draft.sources = [SourceDraft("repos", ["repos/files/*.jsonl.zst"], {}, None)]
        draft.commands += _acquire_commands(clones, raw_code)
    name = name or _corpus_name(draft.sources)
    tokenizer = os.path.join(os.path.dirname(output), "tokenizer.json") if "://" not in output else "tokenizer.json"
    draft.text = recipe_text(name, draft.sources, is_code, tokenizer, draft.problems)
    folder = Path(output).parent if "://" not in output else None
    recipe = parse_recipe(load_yaml(draft.text, output), folder)
    if [list(source.paths) for source in recipe.sources] != [source.paths for source in draft.sources]:
        raise RuntimeError("the written recipe does not read back as intended")  # a mistake in here, not of the files
    draft.commands += next_commands(output, tokenizer, f"out/{slug(name)}")
    return draft


def survey_apart(group: Group, progress: Callable[[str], None]) -> Iterator[Survey]:
    """What a group holds. Where its files differ in the field of their text, each folder, and then each file, is a
    group of its own."""
    found = survey(group, progress)
    parts = by_folder(group) if _differs(found) else []
    if len(parts) == 1 and 1 < len(group.files) <= 64:
        parts = [Group(group.argument, group.kind, (file,)) for file in group.files]
    if len(parts) < 2:
        yield found
        return
    for part in parts:
        yield from survey_apart(part, progress)


def _differs(found: Survey) -> bool:
    return found.fields.get("text_field") == "" and len(found.group.files) > 1


def _take_sources(draft: Draft, surveys: Sequence[tuple[Survey, Listed]]) -> None:
    """A source of each group that holds documents, or whose field is to be set by hand; a line about the others."""
    taken: set[str] = set()
    for found, listed in surveys:
        draft.problems += found.problems
        is_open = found.fields.get("text_field") == ""
        if not (found.documents or is_open):
            if not found.problems:
                draft.problems.append(f"{_several([file.path for file in found.group.files])}: no document found")
            continue
        try:
            paths = paths_of(found.group, _beside(listed))
        except ValueError as error:
            draft.problems.append(f"{shown(found.group.argument)}: {error}")
            continue
        name = unique(slug(_label(found.group, paths)), found.group.kind, taken)
        draft.sources.append(SourceDraft(name, paths, {k: v for k, v in found.fields.items() if v}, found))


def _beside(listed: Listed) -> list[Found] | None:
    """All files that a pattern may mean beside those of a listing: of files that were named themselves, those that
    stand in their folders, too. None where that cannot be known: no pattern is written then."""
    folders = {os.path.dirname(file.path) for file in listed.files if not is_remote(file.path)}
    found = {file.path: file for file in (*listed.files, *listed.others)}
    try:
        for folder in folders if listed.argument in folders else ():
            with os.scandir(folder or ".") as entries:
                for number, entry in enumerate(entries):
                    if number >= MOST_NAMES:
                        return None
                    path = os.path.normpath(os.path.join(folder, entry.name))
                    if path not in found and not entry.is_dir():
                        found[path] = Found(path, 0)
    except OSError:  # of a folder whose files can be read, and not listed
        return None
    return list(found.values())


def _label(group: Group, paths: Sequence[str]) -> str:
    """What a source is called after: the stem of its one file, or the folder of its files."""
    first = group.files[0].path
    if len(group.files) == 1:
        ending = endings_of(group.files)[0]
        return os.path.basename(first).removesuffix(ending) or os.path.basename(os.path.dirname(first))
    if data_set := re.match(r"hf://datasets/[^/]+/([^/@]+)", paths[0]):
        return data_set[1]
    parts = [part for part in fixed_beginning(paths[0]).rpartition("/")[0].split("/") if part not in ("", ".", "..")]
    return parts[-1] if parts else os.path.basename(os.getcwd())


def slug(text: str) -> str:
    """A text as the name of a source: up to 64 of a-z, 0-9, `_`, `.` and `-`.

    >>> slug("My Books (2nd)")
    'my-books-2nd'
    """
    return re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-._")[:48].rstrip("-._") or "files"


def unique(name: str, kind: str, taken: set[str]) -> str:
    """The name, with the format or a number behind it where it is taken; noted as taken."""
    number, chosen = 1, name
    while chosen in taken:
        chosen = f"{name}-{kind}" if number == 1 else f"{name}-{number}"
        number += 1
    taken.add(chosen)
    return chosen


def _corpus_name(sources: Sequence[SourceDraft]) -> str:
    return sources[0].name if len(sources) == 1 else "my-corpus"


def _not_read(group: Group) -> str:
    size = show(sum(file.size for file in group.files if file.size > 0), "bytes")
    return f"{_several([file.path for file in group.files])} ({size}): {NOT_READ[group.kind]}"


def _several(paths: Sequence[str]) -> str:
    """A path, and how many there are beside it."""
    return safe(paths[0]) + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")


def _acquire(clones: Sequence[str]) -> str:
    return f"`refinery init {shlex.quote(clones[0])}` writes one"


def _acquire_commands(clones: Sequence[str], raw_code: Sequence[Group]) -> Iterator[str]:
    """How the records of the lane of source code are made."""
    for clone in clones[:1]:
        where = shlex.quote(clone)
        yield f'refinery acquire git --clone {where} --commit "$(git -C {where} rev-parse HEAD)" --output repos'
    if len(clones) > 1 or (raw_code and not clones):
        yield "refinery acquire git repositories.yaml --output repos    (a list of them: docs/acquisition.md)"


def next_commands(recipe: str, tokenizer: str, corpus: str) -> list[str]:
    """What to run when a recipe is written. `doctor` comes after the tokenizer, which it would miss."""
    named: Mapping[str, str] = {each: shlex.quote(each) for each in (recipe, tokenizer, corpus)}
    return [
        f"refinery train-tokenizer {named[recipe]} --output {named[tokenizer]}",
        f"refinery doctor {named[recipe]} --output {named[corpus]}",
        f"refinery refine {named[recipe]} --output {named[corpus]}",
        f"refinery verify {named[corpus]}",
    ]
