"""Repositories for tests: made of raw objects, so that they can hold what git itself would never write."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard

from refinery.loader.format.manifest import unseal
from refinery.pipelines.acquire.acquisition import acquisition
from refinery.pipelines.acquire.listing import check_list

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed: clones and addresses cannot be tested")
MIT = b"MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
APACHE = b"Apache License\nVersion 2.0, January 2004\nhttp://www.apache.org/licenses/\n"
DATE = "1700000000 +0000"
FILE, LINK, SUBMODULE, FOLDER = b"100644", b"120000", b"160000", b"40000"


def git(repository: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git as its own developers' tests do: with nobody's configuration."""
    assert GIT
    people = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in PERSON.items()}
    environment = {"PATH": os.environ["PATH"], "HOME": str(repository), "GIT_CONFIG_NOSYSTEM": "1"} | people
    command = [GIT, "-C", str(repository), *arguments]
    return (
        subprocess.run(command, input=stdin, env=environment, check=True, capture_output=True).stdout.decode().strip()
    )


PERSON = {"NAME": "A", "EMAIL": "a@example.org", "DATE": DATE}


def new_repository(path: Path, object_format: str = "sha1") -> Path:
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--bare", f"--object-format={object_format}")
    return path


def blob(repository: Path, data: bytes) -> str:
    return git(repository, "hash-object", "-w", "--stdin", stdin=data)


def tree(repository: Path, *entries: tuple[bytes, bytes, str]) -> str:
    """A tree of (mode, name, id), however wrong."""
    data = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(id_) for mode, name, id_ in entries)
    return git(repository, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data)


def tree_of(repository: Path, files: dict[str, bytes]) -> str:
    """A tree of files by path, in folders."""
    folders: dict[str, dict[str, bytes]] = {}
    entries = []
    for path, data in files.items():
        top, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(top, {})[rest] = data
        else:
            entries.append((FILE, top.encode(), blob(repository, data)))
    entries += [(FOLDER, name.encode(), tree_of(repository, inside)) for name, inside in folders.items()]
    return tree(repository, *sorted(entries, key=lambda entry: entry[1]))


def commit(repository: Path, root: str) -> str:
    return git(repository, "commit-tree", root, "-m", "x")


def repository_of(path: Path, files: dict[str, bytes], tag: str = "v1") -> str:
    """A bare repository with one commit, at a tag and a branch; returns the commit."""
    made = commit(new_repository(path), tree_of(path, files))
    git(path, "update-ref", f"refs/tags/{tag}", made)
    git(path, "update-ref", "refs/heads/main", made)
    return made


def acquire(output: Path | str, *entries: dict[str, Any], most: int = 10_000_000, timeout: float = 100) -> list[str]:
    """Run an acquisition; returns what it says."""
    said: list[str] = []
    said += acquisition(check_list(list(entries), ""), str(output), most, timeout, said.append).run()
    return said


def records(output: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted((output / "files").iterdir()):
        data = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
        found += [json.loads(line) for line in data.splitlines()]
    return found


def texts(output: Path) -> dict[str, str]:
    return {record["path"]: record["content"] for record in records(output)}


def report(output: Path) -> dict[str, Any]:
    """The only report."""
    (path,) = (output / "repositories").iterdir()
    return unseal(path.read_bytes(), str(path))


def everything(output: Path) -> dict[str, bytes]:
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in output.rglob("*") if path.is_file()}
