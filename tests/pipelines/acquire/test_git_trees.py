"""Clones of strangers: everything in their trees is taken or counted, and nothing that they configured runs."""

import hashlib
import os
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from refinery.pipelines.acquire import tree_files
from refinery.pipelines.acquire.git_objects import parse_tree
from refinery.pipelines.acquire.tree_files import LFS, RepositoryError
from tests.pipelines.acquire.repositories import (
    APACHE,
    FILE,
    FOLDER,
    LINK,
    MIT,
    SUBMODULE,
    acquire,
    blob,
    commit,
    git,
    needs_git,
    new_repository,
    records,
    report,
    repository_of,
    texts,
    tree,
    tree_of,
)

pytestmark = needs_git


def test_records_have_text_place_and_the_nearest_licence(tmp_path: Path) -> None:
    files = {
        "LICENSE": MIT,
        "src/main.c": b"int main;\n",
        "lib/COPYING": APACHE,
        "lib/deep/x.c": b"\xef\xbb\xbfint x;\n",
    }
    made = repository_of(tmp_path / "a", files)
    acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "commit": made, "name": "org/a"})
    found = records(tmp_path / "out")
    assert [record["path"] for record in found] == ["LICENSE", "lib/COPYING", "lib/deep/x.c", "src/main.c"]
    assert found[2] == {
        "content": "int x;\n",
        "repo": "org/a",
        "commit": made,
        "path": "lib/deep/x.c",
        "repo_license": "Apache-2.0",
    }
    assert found[3]["repo_license"] == "MIT"


def test_every_entry_of_a_hostile_tree_is_taken_or_counted(tmp_path: Path) -> None:
    made = new_repository(tmp_path / "a")
    good = blob(made, b"good\n")
    inside = tree(made, (FILE, b"x", good))
    contents = {
        b"lfs": LFS + b"oid sha256:0\nsize 9\n",
        b"zero": b"a\0b",
        b"latin-1": b"caf\xe9\n",
        b"blank": b" \n\t",
        b"none": b"",
        b"large": b"x" * 101,
    }
    entries = [
        (FILE, b"good", good),
        (b"100755", b"run", good),
        (b"100664", b"old mode", good),
        (FILE, b"Good", good),  # differs in case alone: a file like any other
        (FILE, "ünïcode ‮".encode(), good),
        (FILE, b"-rf", good),
        (LINK, b"link", blob(made, b"/etc/passwd")),
        (SUBMODULE, b"sub", "1" * 40),
        (b"20000", b"what", good),
        (FILE, b"..", good),
        (FILE, b".", good),
        (FILE, b"", good),
        (FILE, b"a/b", good),
        (FILE, b"/etc/cron.d/x", good),
        (FOLDER, b"..", inside),
        (FOLDER, b".GIT", inside),
        (FILE, b"new\nline", good),
        (FILE, b"esc\x1b[2J", good),
        (FILE, "\u2028".encode(), good),
        (FILE, b"\xff\xfe", good),
        (FILE, b"n" * 4097, good),
        (FOLDER, b"d" * 4090, tree(made, (FOLDER, b"e" * 10, inside))),
        (FILE, b"good", good),
        *((FILE, name, blob(made, data)) for name, data in contents.items()),
    ]
    root = commit(made, tree(made, *entries))
    acquire(tmp_path / "out", {"clone": str(made), "commit": root}, most=100)
    found = report(tmp_path / "out")
    assert sorted(texts(tmp_path / "out")) == sorted(["good", "run", "old mode", "Good", "ünïcode ‮", "-rf"])
    assert found["skipped"] == {
        "symlink": 1,
        "submodule": 1,
        "special-file": 1,
        "path-unsafe": 7,
        "path-control": 3,
        "path-not-utf8": 1,
        "path-too-long": 2,
        "path-repeated": 1,
        "lfs-pointer": 1,
        "binary": 1,
        "not-utf8": 1,
        "empty": 2,
        "too-large": 1,
    }
    assert found["entries"] == len(entries) == found["taken"]["files"] + sum(found["skipped"].values())


def test_nothing_that_a_clone_configures_runs_or_counts(tmp_path: Path) -> None:
    """Hooks, fsmonitor, filters, replacements, and a remote that would be asked for a missing object."""
    clone = tmp_path / "clone"
    clone.mkdir()
    git(clone, "init", "--quiet")
    folder = clone / ".git"
    mark = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    attributes = {".gitattributes": b"* filter=evil text eol=crlf working-tree-encoding=UTF-16\n", "a.c": b"a\n"}
    root = commit(clone, tree_of(clone, attributes))
    git(clone, "update-ref", "refs/tags/v1", root)
    git(clone, "replace", blob(clone, b"a\n"), blob(clone, b"replaced\n"))
    missing = commit(clone, tree(clone, (FILE, b"gone.c", "2" * 40)))
    for name in ("reference-transaction", "post-checkout", "pre-auto-gc"):
        os.symlink(script, folder / "hooks" / name)
    (folder / "config").write_text(
        f"""[core]
 repositoryformatversion = 1
 fsmonitor = {script}
 hooksPath = {folder}/hooks
 sshCommand = {script}
 pager = {script}
 alternateRefsCommand = {script}
[extensions]
 partialClone = origin
[remote "origin"]
 url = ext::{script}
 promisor = true
[filter "evil"]
 smudge = {script}
 clean = {script}
[protocol]
 allow = always
"""
    )
    acquire(tmp_path / "out", {"clone": str(clone), "tag": "v1"})
    assert texts(tmp_path / "out")["a.c"] == "a\n"
    with pytest.raises(RepositoryError, match=f"object {'2' * 40} is missing"):
        acquire(tmp_path / "out2", {"clone": str(clone), "commit": missing})
    assert not mark.exists()
    with pytest.raises(subprocess.CalledProcessError):
        git(clone, "cat-file", "-p", "2" * 40)
    assert mark.exists()  # it was a trap


def test_a_branch_head_or_part_of_a_hash_is_refused(tmp_path: Path) -> None:
    made = repository_of(tmp_path / "a", {"x.c": b"x\n"})
    place = str(tmp_path / "a")
    with pytest.raises(RepositoryError, match=f"main is a branch, which moves.*{made}"):
        acquire(tmp_path / "out", {"clone": place, "tag": "main"})
    with pytest.raises(RepositoryError, match="it has no tag v9; `git tag` lists them"):
        acquire(tmp_path / "out", {"clone": place, "tag": "v9"})
    for given in ("HEAD", "main", made[:12], made.upper(), f"{made}^"):
        with pytest.raises(ValueError, match="all its digits"):
            acquire(tmp_path / "out", {"clone": place, "commit": given})
    for extra in ({}, {"branch": "main"}):
        with pytest.raises(ValueError, match="name a `tag`, or a `commit` by all its digits"):
            acquire(tmp_path / "out", {"clone": place} | extra)


def test_tags_are_resolved_through_tag_objects_and_packed_references(tmp_path: Path) -> None:
    made = repository_of(tmp_path / "a", {"x.c": b"x\n"})
    git(tmp_path / "a", "tag", "-a", "-m", "x", "annotated/v2", made)
    tag_id = git(tmp_path / "a", "rev-parse", "annotated/v2")
    for number in range(2):
        acquire(tmp_path / f"out{number}", {"clone": str(tmp_path / "a"), "tag": "annotated/v2", "commit": made})
        assert report(tmp_path / f"out{number}")["commit"] == made
        git(tmp_path / "a", "pack-refs", "--all")
        git(tmp_path / "a", "repack", "-adq")
    with pytest.raises(RepositoryError, match=f"a tag's own id; its commit is {made}"):
        acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "commit": tag_id})
    with pytest.raises(RepositoryError, match=f"tag v1 is at {made}, not at {'3' * 40}"):
        acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "tag": "v1", "commit": "3" * 40})
    root = git(tmp_path / "a", "rev-parse", f"{made}^{{tree}}")
    with pytest.raises(RepositoryError, match="names a tree, not a commit"):
        acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "commit": root})


def test_worktrees_and_long_hashes(tmp_path: Path) -> None:
    made = new_repository(tmp_path / "a", "sha256")
    root = commit(made, tree_of(made, {"x.c": b"x\n", "y/z.c": b"z\n"}))
    git(made, "update-ref", "refs/tags/v1", root)
    git(made, "worktree", "add", "--quiet", "--no-checkout", "--detach", str(tmp_path / "w"), root)
    acquire(tmp_path / "out", {"clone": str(tmp_path / "w"), "tag": "v1"})
    assert (len(root), texts(tmp_path / "out")) == (64, {"x.c": "x\n", "y/z.c": "z\n"})


def bomb(made: Path) -> str:
    """Ten folders that each hold the next one ten times: ten billion files."""
    root = tree(made, *((FILE, b"%d" % n, blob(made, b"x\n")) for n in range(10)))
    for _ in range(9):
        root = tree(made, *((FOLDER, b"%d" % n, root) for n in range(10)))
    return root


def deep(made: Path) -> str:
    root = tree(made, (FILE, b"x", blob(made, b"x\n")))
    for _ in range(30):
        root = tree(made, (FOLDER, b"d" * 250, root))
    return root


def test_bombs_end_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_repository(tmp_path / "a")
    monkeypatch.setattr(tree_files, "MAX_ENTRIES", 1000)
    with pytest.raises(RepositoryError, match="more than 1,000 files and folders"):
        acquire(tmp_path / "out", {"clone": str(made), "commit": commit(made, bomb(made))})
    monkeypatch.setattr("refinery.pipelines.acquire.take.MAX_TAKEN", 1 << 20)
    many = tree(made, *((FILE, b"%d" % n, blob(made, b"y" * 9000)) for n in range(2)))
    for _ in range(3):
        many = tree(made, *((FOLDER, b"%d" % n, many) for n in range(5)))
    with pytest.raises(RepositoryError, match="its files have more than"):
        acquire(tmp_path / "out", {"clone": str(made), "commit": commit(made, many)})
    acquire(tmp_path / "deep", {"clone": str(made), "commit": commit(made, deep(made))})
    assert report(tmp_path / "deep")["skipped"] == {"path-too-long": 1}


def forge(made: Path, name: str, kind: str, data: bytes) -> None:
    """A loose object whose bytes are not those of its name."""
    path = made / "objects" / name[:2] / name[2:]
    path.unlink()
    path.write_bytes(zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data))


def cut(made: Path, name: str) -> None:
    path = made / "objects" / name[:2] / name[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-5])


def pipe(made: Path, name: str) -> None:
    path = made / "objects" / name[:2] / name[2:]
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, tuple[Callable[[Path, str], None], str]] = {
    "another file": (lambda made, name: forge(made, name, "blob", b"b\n"), "damaged|hash"),
    "another kind": (lambda made, name: forge(made, name, "tree", b""), "a file in it is a tree"),
    "cut": (cut, "git: |missing"),
    "a pipe": (pipe, "reading an object took more than 0.5 s"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_fails_the_repository_alone(tmp_path: Path, damage: str) -> None:
    """A pipe in place of an object costs the half second that is allowed."""
    made = repository_of(tmp_path / "a", {"x.c": b"a\n"})
    good = repository_of(tmp_path / "b", {"x.c": b"good\n"})
    change, message = DAMAGES[damage]
    change(tmp_path / "a", hashlib.sha1(b"blob 2\0a\n").hexdigest())  # noqa: S324 - git's
    both = [{"clone": str(tmp_path / "a"), "commit": made}, {"clone": str(tmp_path / "b"), "commit": good}]
    with pytest.raises(RepositoryError, match=message):
        acquire(tmp_path / "out", *both, timeout=0.5)
    assert texts(tmp_path / "out") == {"x.c": "good\n"}
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("data", [b"100644 x", b"100644 x\0short", b"x", b"99 x\0" + b"1" * 20, b"1" * 30])
def test_damaged_trees_are_errors(data: bytes) -> None:
    with pytest.raises(ValueError):
        list(parse_tree(data, 40))
