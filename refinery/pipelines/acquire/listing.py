"""The list of repositories: what it may say, and how it is read."""

import os
import re
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import model_validator

from refinery.loader.storage.http_store import HttpStore
from refinery.pipelines.acquire.git_sources import HEX
from refinery.transforms.core.data_text.plain_yaml import load_yaml
from refinery.transforms.core.params import Params, ParamsError

KINDS = ("url", "clone", "tarball", "files")
MAX_LINES = 256 << 20  # bytes of a list in JSON Lines
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,199}")
# What git's check-ref-format allows, without blanks, and without all that means something else on a command line.
TAG = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)|[/.]$))[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
PINS = "a branch, HEAD or a part of a hash moves or is ambiguous: name a `tag`, or a `commit` by all its digits"


class RepositoryParams(Params):
    """One repository. One of `url`, `clone`, `tarball` and `files` says where it is."""

    url: str = ""
    """address of a repository, only `https://`; one commit is fetched, without history"""
    clone: str = ""
    """a clone on this machine, bare or not; a relative path begins at the list's folder"""
    tarball: str = ""
    """a `.tar`, also compressed (gzip, Zstandard, LZ4, xz, bzip2): a path, or an `https://` address"""
    files: str = ""
    """JSON Lines or Parquet with columns repo, commit, path and content (repo_license counts where no licence file is
    above): a path, a glob or an address"""
    tag: str = ""
    """of a `url` or `clone`; resolved, recorded, and compared with what was recorded on every later run"""
    commit: str = ""
    """all 40 or 64 digits; with a tag, the commit that the tag must point to; of a tarball, the commit that it was
    made from"""
    name: str = ""
    """`repo` of the records; empty: host and path of an address, or the name of the folder or file"""
    sha256: str = ""
    """checksum that the tarball must have"""
    strip: bool = True
    """of a tarball: remove the single top-level folder from paths, if there is one"""

    @model_validator(mode="before")
    @classmethod
    def _refuse_branches(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in ("branch", "ref", "revision"):
                if key in data:
                    raise ValueError(f"{key}: {PINS}")
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [kind for kind in KINDS if getattr(self, kind)]
        if len(given) != 1:
            raise ValueError(f"{' and '.join(given) or 'nothing'} given, one of {', '.join(KINDS)} is needed")
        check_place(self.kind, self.place)
        if self.commit and not HEX.fullmatch(self.commit):
            raise ValueError(f"commit: {self.commit[:80]!a} given; {PINS} (`git rev-parse NAME^{{commit}}` gives it)")
        if self.tag and not TAG.fullmatch(self.tag):
            raise ValueError(f"tag: {self.tag[:80]!a} given, the name of a tag is allowed")
        if self.kind in ("url", "clone") and not self.tag and not self.commit:
            raise ValueError(f"tag: nothing given; {PINS}")
        if self.kind == "tarball" and (self.tag or not self.commit):
            raise ValueError("commit: a tarball needs the `commit` that it was made from, all its digits, and no tag")
        if self.kind == "files" and (self.tag or self.commit):
            raise ValueError("commit: each row of files has its own, none is allowed here")
        if self.sha256 and (self.kind != "tarball" or not re.fullmatch("[0-9a-f]{64}", self.sha256)):
            raise ValueError("sha256: 64 of 0-9 a-f are allowed, of a tarball")
        if not NAME.fullmatch(self.shown) or {"", ".", "..", ".git"} & set(self.shown.split("/")):
            raise ValueError(f"name: {self.shown[:80]!a} given, up to 200 of A-Z a-z 0-9 . _ + - / are allowed")
        return self

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind))

    @property
    def place(self) -> str:
        return str(getattr(self, self.kind))

    @property
    def shown(self) -> str:
        """The repository's name in records and messages."""
        if self.name:
            return self.name
        place = self.place.rstrip("/")
        if self.kind == "url":
            return re.sub(r":[0-9]+/", "/", place.partition("://")[2], count=1).removesuffix(".git")
        last = os.path.basename(os.path.realpath(place) if self.kind == "clone" else place)
        return re.sub(r"\.git$|\.tar(\.\w+)?$|\.tgz$", "", last).lstrip("*.") or self.kind


def check_place(kind: str, place: str) -> None:
    """Raise ValueError for what is not a path or https:// address. Never quotes what may hold a password."""
    scheme = place.partition("://")[0] if "://" in place else ""
    remote = scheme in ("https", "http")
    if place.startswith("-") or "\0" in place or not place.isprintable():
        raise ValueError(f"{kind}: a path or an address is allowed, without control characters or `-` in front")
    if (kind == "url" and not remote) or (kind == "clone" and scheme) or (kind == "tarball" and scheme and not remote):
        allowed = {"url": "an https:// address", "clone": "a path", "tarball": "a path or an https:// address"}[kind]
        named = f" {scheme}://… given," if re.fullmatch(r"[a-z0-9+.-]{1,20}", scheme) else ""
        raise ValueError(f"{kind}:{named} {allowed} is allowed (no ssh, git, ext or file)")
    if remote:
        HttpStore(place)


def read_list(path: str) -> list[RepositoryParams]:
    """The repositories of a list: YAML with the key `repositories`, or JSON Lines (*.jsonl) of the same objects.

    Paths are made to begin at the list's folder. Raises ValueError with every mistake, one a line; OSError.
    """
    data = Path(path).read_bytes()
    entries: Any
    if path.endswith(".jsonl"):
        if len(data) > MAX_LINES:
            raise ValueError(f"{path}: {len(data)} bytes given, at most {MAX_LINES} are allowed")
        entries = [json_line(line, f"{path}:{number}") for number, line in enumerate(data.splitlines(), 1) if line]
    else:
        loaded = load_yaml(data, path)
        entries = loaded.get("repositories") if isinstance(loaded, dict) and len(loaded) == 1 else None
        if not isinstance(entries, list):
            raise ValueError(f"{path}: one key is allowed, `repositories`, with a list of repositories")
    return check_list(entries, os.path.dirname(path))


def json_line(line: bytes, where: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{where}: not JSON: {error}") from None


def check_list(entries: list[Any], folder: str) -> list[RepositoryParams]:
    """The repositories that plain data describe. folder: where relative paths begin. Raises ParamsError."""
    found: list[RepositoryParams] = []
    problems: list[str] = []
    names: set[str] = set()
    for index, entry in enumerate(entries):
        try:
            if not isinstance(entry, dict):
                raise ValueError("a mapping such as {url: https://…, tag: v1} is allowed")
            one = RepositoryParams(**below(entry, folder))
        except ParamsError as error:
            problems += [f"repositories[{index}]: {problem}" for problem in error.problems]
            continue
        except ValueError as error:
            problems.append(f"repositories[{index}]: {error}")
            continue
        if one.shown in names:
            problems.append(f"repositories[{index}]: name: {one.shown} given twice; give one of them another `name`")
        names.add(one.shown)
        found.append(one)
    if problems or not found:
        raise ParamsError(problems or ["repositories: an empty list given, one or more are needed"])
    return found


def below(entry: dict[Any, Any], folder: str) -> dict[str, Any]:
    """An entry with its path at the list's folder."""
    moved = {}
    for key in ("clone", "tarball", "files"):
        place = entry.get(key)
        if isinstance(place, str) and place and "://" not in place and not place.startswith("-"):
            moved[key] = os.path.join(folder, place)
    return {str(key): value for key, value in entry.items()} | moved
