"""`refinery acquire git`: repositories into files of records, one repository after the other, and a sealed manifest.

    OUTPUT/files/NAME-KEY-00000.jsonl.zst    a repository's files, in order of their paths
    OUTPUT/repositories/NAME-KEY.json        its report, sealed, written when its files are there
    OUTPUT/manifest.json                     written last: the reports, and the sums

KEY is a hash of what was asked for. A repository with a report is not read again; one without it is read again, and
makes the same bytes.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refinery.loader.format.manifest import MANIFEST, RUN, seal, unseal
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import WRITABLE, open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.acquire.failures import OutputFailed, its_own_failure, of_the_output
from refinery.pipelines.acquire.git_objects import GitObjects, GitTree, new_repository
from refinery.pipelines.acquire.git_sources import fetch, git_folder, tag_of_clone, tag_of_remote
from refinery.pipelines.acquire.listing import RepositoryParams
from refinery.pipelines.acquire.shard_files import FOLDER, ShardWriter
from refinery.pipelines.acquire.take import Add, take_tree
from refinery.pipelines.acquire.tarballs import download, open_tar, unpacked
from refinery.pipelines.acquire.tree_files import Counts, Deadline, RepositoryError
from refinery.transforms.core.safe_text import safe

VERSION = 1  # of the records: another one for every change of what is taken, or how
REPORTS = "repositories"
NAMED = 5  # missing files that a line names
KIND = "refinery-acquisition"


@dataclass
class Acquisition:
    """What one command does. most: bytes of a file. timeout: seconds for a fetch, and for an answer of git."""

    repositories: Sequence[RepositoryParams]
    store: Store
    most: int
    timeout: float
    say: Callable[[str], None]

    def run(self) -> Iterator[str]:
        """Take every repository; the last lines say what there is.

        A repository that cannot be taken, whatever is wrong with it, does not stop the others; in the end they are one
        RepositoryError. Raises ValueError where the output holds something else, StorageConflict where it holds other
        bytes, OSError where it cannot be written.
        """
        names = {self.name_of(one): one for one in self.repositories}
        self.check_output(names)
        reports: dict[str, dict[str, Any]] = {}
        failed: list[str] = []
        for number, (name, one) in enumerate(names.items(), 1):
            title = f"{number} of {len(names)}: {one.shown}"
            try:
                reports[name] = self.acquire(name, one, title)
            except RepositoryError as error:
                failed.append(f"{one.shown}: {error}")
                self.say(f"{title}: {error}")
            except OutputFailed as error:
                raise error.cause from None
        if failed:
            done = f"{len(reports)} of {len(names)} repositories are complete; the same command tries the others again"
            raise RepositoryError("\n".join([*failed, done]))
        yield from self.publish(reports)

    def name_of(self, one: RepositoryParams) -> str:
        """The beginning of a repository's file names: its name, and a hash of what is asked for."""
        asked = one.plain() | {"name": one.shown, one.kind: place_of(one), "most": self.most, "version": VERSION}
        key = hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=6).hexdigest()
        return f"{re.sub(r'[^a-z0-9._-]', '-', one.shown.lower())[-60:].strip('.-')}-{key}"

    def check_output(self, names: dict[str, RepositoryParams]) -> None:
        """Raise ValueError where the output is another list's, or no acquisition's."""
        if self.store.size(RUN) is not None:
            raise ValueError(f"--output: {self.store.root} holds a corpus; choose another one")
        if self.store.size(MANIFEST) is None:
            return
        manifest = unseal(self.store.read(MANIFEST), self.store.url(MANIFEST))
        listed = [entry.get("report") for entry in manifest.get("repositories", [])]
        if manifest.get("kind") != KIND or listed != [f"{REPORTS}/{name}.json" for name in names]:
            raise ValueError(f"--output: {self.store.root} holds the files of another list; choose another one")

    def acquire(self, name: str, one: RepositoryParams, title: str) -> dict[str, Any]:
        """The report of a repository, whose files are there afterwards. Raises RepositoryError."""
        path = f"{REPORTS}/{name}.json"
        if self.store.size(path) is None:
            self.say(f"{title}: {at(one)} …")
            with scratch_folder("repository") as scratch:
                report = self.take(name, one, scratch, title)
            self.store.create(path, seal(report))
            self.say(f"{title}: {summary(report)}")
            return report
        report = unseal(self.store.read(path), self.store.url(path))
        if one.tag:
            with scratch_folder("repository") as scratch, its_own_failure():
                commit = self.commit_now(one, scratch)
            if commit != report["commit"]:
                raise RepositoryError(
                    f"tag {one.tag} has moved: it was at {report['commit']} and is at {commit} now; to take the new "
                    "one, choose another --output, to keep the old one, name its commit"
                )
        if one.kind == "files":
            from refinery.pipelines.acquire.rows import rows_of

            with its_own_failure():
                found = rows_of(one.place, self.most).inputs()
            if found != report["inputs"]:
                raise RepositoryError(f"its files have changed: {report['inputs']!s:.300} then, {found!s:.300} now")
        for file in report["files"]:
            if self.store.size(file["path"]) != file["size"]:
                raise RepositoryError(f"{self.store.url(file['path'])} is gone or cut; remove {self.store.url(path)}")
        self.say(f"{title}: is there")
        return report

    def take(self, name: str, one: RepositoryParams, scratch: Path, title: str) -> dict[str, Any]:
        """Write a repository's files; returns its report."""
        writer = ShardWriter(self.store, name, scratch, lambda count: self.say(f"{title}: {count:,} files so far"))
        add = of_the_output(writer.add)
        more: dict[str, Any] = {}
        try:
            with its_own_failure():
                commit, counts, more = self.read(one, scratch, add)
            writer.close()
        finally:
            writer.abandon()
        asked = {"kind": one.kind, "place": place_of(one), "tag": one.tag, "commit": one.commit}
        found = {"kind": "refinery-acquired-repository", "version": VERSION, "name": one.shown, "asked": asked}
        return found | {"commit": commit, "files": writer.files, "max_file_bytes": self.most} | counts.plain() | more

    def read(self, one: RepositoryParams, scratch: Path, add: Add) -> tuple[str, Counts, dict[str, Any]]:
        """Give a repository's records to `add`; its commit, where every entry went, and more for the report."""
        deadline = Deadline(self.timeout)
        if one.kind == "files":
            from refinery.pipelines.acquire.rows import rows_of

            rows = rows_of(one.place, self.most)
            return "", rows.take(add, deadline), {"inputs": rows.inputs()}
        if one.kind == "tarball":
            return one.commit, *self.take_tarball(one, scratch, add, deadline)
        with self.opened(one, scratch, deadline) as (objects, commit):
            return commit, take_tree(GitTree(objects, commit), one.shown, commit, self.most, add, deadline), {}

    def take_tarball(
        self, one: RepositoryParams, scratch: Path, add: Add, deadline: Deadline
    ) -> tuple[Counts, dict[str, Any]]:
        source = Path(one.place)
        if "://" in one.place:
            source = scratch / "download"
            download(one.place, source, self.timeout)
        elif not source.is_file():
            raise RepositoryError("there is no such file")
        path, sha256 = unpacked(source, scratch, deadline)
        if one.sha256 not in ("", sha256):
            raise RepositoryError(f"its sha256 is {sha256}, {one.sha256} is expected")
        file, tree = open_tar(path, one.strip)
        with file:
            if tree.commit not in ("", one.commit):
                raise RepositoryError(f"it says that it was made from commit {tree.commit[:64]!a}, not {one.commit}")
            return take_tree(tree, one.shown, one.commit, self.most, add, deadline), {"tarball_sha256": sha256}

    def commit_now(self, one: RepositoryParams, scratch: Path) -> str:
        """The commit at a tag, without its files. Raises RepositoryError."""
        if one.kind == "url":
            return tag_of_remote(one.url, one.tag, scratch, self.timeout)
        with self.opened(one, scratch, Deadline(self.timeout)) as (_, commit):
            return commit

    @contextlib.contextmanager
    def opened(self, one: RepositoryParams, scratch: Path, deadline: Deadline) -> Iterator[tuple[GitObjects, str]]:
        """A repository's objects, and the commit that is asked for. Raises RepositoryError."""
        borrowed = None
        if one.kind == "clone":
            folder = git_folder(Path(one.place))
            borrowed, wanted = folder / "objects", tag_of_clone(folder, one.tag) if one.tag else one.commit
        else:
            wanted = tag_of_remote(one.url, one.tag, scratch, self.timeout) if one.tag else one.commit
        repository = new_repository(scratch, len(wanted), self.timeout, borrowed)
        if one.kind == "url":
            fetch(one.url, f"refs/tags/{one.tag}" if one.tag else wanted, scratch, self.timeout)
        with GitObjects(repository, len(wanted), self.timeout, deadline) as objects:
            commit = objects.commit_of(wanted)
            if not one.tag and commit != wanted:
                raise RepositoryError(f"{wanted} is a tag's own id; its commit is {commit}")
            if one.commit not in ("", commit):
                raise RepositoryError(f"tag {one.tag} is at {commit}, not at {one.commit} as the list says")
            yield objects, commit

    def publish(self, reports: dict[str, dict[str, Any]]) -> Iterator[str]:
        """Write the manifest. Raises RuntimeError for files in the output that no report names."""
        ours = {file["path"] for report in reports.values() for file in report["files"]}
        ours |= {f"{REPORTS}/{name}.json" for name in reports}
        for path in (*self.store.list(FOLDER), *self.store.list(REPORTS)):
            if path not in ours:
                raise RuntimeError(f"{self.store.url(path)} belongs to no repository of the list; remove it")
        entries = [
            {"name": report["name"], "commit": report["commit"], "report": f"{REPORTS}/{name}.json"}
            | {"sha256": hashlib.sha256(seal(report)).hexdigest()}
            for name, report in reports.items()
        ]
        sums = Counts()
        for report in reports.values():
            sums.entries += report["entries"]
            sums.taken += report["taken"]["files"]
            sums.taken_bytes += report["taken"]["bytes"]
            for reason, count in report["skipped"].items():
                sums.skipped[reason] = sums.skipped.get(reason, 0) + count
        totals = sums.plain()
        manifest = {"kind": KIND, "version": VERSION, "repositories": entries, "totals": totals}
        self.store.create(MANIFEST, seal(manifest))
        yield f"{len(reports)} repositories are in {self.store.root}: {summary(totals)}"
        paths = f"{self.store.url(FOLDER)}/*.jsonl.zst"
        yield f"read them:   refinery refine recipes/code.yaml --input '{paths}' --output OUTPUT"


def place_of(one: RepositoryParams) -> str:
    """Where a repository is, for the record: an address, or the last name of a path, which is the same elsewhere."""
    return one.place if "://" in one.place else os.path.basename(os.path.abspath(one.place))


def at(one: RepositoryParams) -> str:
    return f"at {one.tag or one.commit[:12]}" if one.kind != "files" else "rows"


def summary(report: dict[str, Any]) -> str:
    """The counts of a report in words."""
    taken, skipped = report["taken"], report["skipped"]
    line = f"{taken['files']:,} files taken, {taken['bytes'] / 1e6:,.1f} MB"
    if skipped:
        listed = ", ".join(f"{reason} {count:,}" for reason, count in skipped.items())
        line += f"; {sum(skipped.values()):,} skipped ({listed})"
    if missing := report.get("missing"):
        line += f"; missing: {', '.join(map(safe, missing[:NAMED]))}{' …' if len(missing) > NAMED else ''}"
    return line


def acquisition(
    repositories: Sequence[RepositoryParams], output: str, most: int, timeout: float, say: Callable[[str], None]
) -> Acquisition:
    """The acquisition into a folder, gs:// or s3://. Raises ValueError for another output."""
    if "://" in output and not output.startswith(("gs://", "s3://")):
        raise ValueError(f"--output: {WRITABLE}")
    return Acquisition(repositories, open_store(output), most, timeout, say)
