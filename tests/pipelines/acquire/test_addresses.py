"""Repositories and tarballs at addresses: one commit is fetched, and failures say what failed, not what is secret."""

import os
import resource
import socket
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.acquire import git_program, tarballs
from refinery.pipelines.acquire.git_program import reason_of, run_git
from refinery.pipelines.acquire.tree_files import RepositoryError
from tests.loader.range_server import RangeServer, range_server
from tests.pipelines.acquire.git_server import GitServer, git_server
from tests.pipelines.acquire.repositories import acquire, commit, git, needs_git, report, repository_of, texts, tree_of
from tests.pipelines.acquire.test_tarballs import COMMIT, member, tar_of


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path / "served") as running:
        yield running


@needs_git
def test_one_commit_is_fetched_by_tag_or_by_hash(tmp_path: Path, server: GitServer) -> None:
    place = tmp_path / "served" / "a.git"
    first = repository_of(place, {"x.c": b"first\n"})
    git(place, "tag", "-a", "-m", "x", "v2", commit(place, tree_of(place, {"x.c": b"second\n"})))
    second = git(place, "rev-parse", "v2^{commit}")
    entry = {"url": f"{server.url}/a.git", "name": "a"}
    acquire(tmp_path / "tag", entry | {"tag": "v2"})
    assert (texts(tmp_path / "tag"), report(tmp_path / "tag")["commit"]) == ({"x.c": "second\n"}, second)
    acquire(tmp_path / "hash", entry | {"commit": first})
    assert texts(tmp_path / "hash") == {"x.c": "first\n"}
    server.requests.clear()
    assert acquire(tmp_path / "hash", entry | {"commit": first})[0] == "1 of 1: a: is there"
    assert server.requests == []
    acquire(tmp_path / "tag", entry | {"tag": "v2"})
    git(place, "update-ref", "refs/tags/v2", first)
    with pytest.raises(RepositoryError, match=f"tag v2 has moved: it was at {second} and is at {first} now"):
        acquire(tmp_path / "tag", entry | {"tag": "v2"})
    with pytest.raises(RepositoryError, match="it has no tag main; branches are not accepted"):
        acquire(tmp_path / "branch", entry | {"tag": "main"})
    with pytest.raises(RepositoryError, match=f"a: git: .*{'5' * 40}"):
        acquire(tmp_path / "none", entry | {"commit": "5" * 40})


@needs_git
def test_servers_that_fail(tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = repository_of(tmp_path / "served" / "a.git", {"x.c": b"x\n" * 9000})

    def fails(message: str, name: str = "a.git") -> None:
        with pytest.raises(RepositoryError, match=message):
            acquire(tmp_path / "out", {"url": f"{server.url}/{name}", "commit": made, "name": "a"})

    server.answers["/login/info/refs"] = 401, {"WWW-Authenticate": "Basic"}
    fails("it asks for a login, or does not exist; clone it yourself", "login")
    server.answers["/away/info/refs"] = 302, {"Location": "file:///etc/hosts"}
    fails("git: ", "away")
    fails("not found", "none.git")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(RepositoryError, match=f"unable to access 'http://127.0.0.1:{port}/x/': .*onnect"):
        acquire(tmp_path / "out", {"url": f"http://127.0.0.1:{port}/x", "commit": made})
    monkeypatch.setattr(git_program, "PASSED", ("PATH",))
    monkeypatch.setattr(git_program, "POLL", 0.01)
    monkeypatch.setattr("refinery.pipelines.acquire.git_sources.MAX_TAKEN", 10)
    fails("more than 0 MiB arrived")


@needs_git
def test_nothing_of_the_environment_reaches_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does git have more memory than it should."""
    made = repository_of(tmp_path / "a", {"x.c": b"x\n"})
    for name, value in {"DIR": "/none", "CONFIG_COUNT": "x", "OBJECT_DIRECTORY": "/none", "EXEC_PATH": "/none"}.items():
        monkeypatch.setenv(f"GIT_{name}", value)
    seen = []
    real = git_program.subprocess.Popen

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(real(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(git_program.subprocess, "Popen", watched)
    limited = []
    if hasattr(resource, "prlimit"):
        set_limit = resource.prlimit
        monkeypatch.setattr(resource, "prlimit", lambda *given: limited.append(given) or set_limit(*given))
    acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "commit": made})
    assert texts(tmp_path / "out") == {"x.c": "x\n"}
    assert len(seen) == 3
    assert all(process.returncode is not None for process in seen)
    sizes = (git_program.MEMORY, git_program.MEMORY)
    assert limited in ([], [(process.pid, resource.RLIMIT_DATA, sizes) for process in seen])


@needs_git
def test_git_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RepositoryError, match=r"git hash-object took more than 0.2 s \(--timeout\)"):
        run_git(["hash-object", "pipe"], tmp_path, 0.2, 1 << 20)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"fatal: unable to access 'https://me:" + b"word@h/x/': no\n", "git: unable to access 'https://h/x/': no"),
        (b"remote: a\x1b[2Jb\nerror: \x07c?token=secret\n", "git:  c"),
        (b"", "git: no reason given"),
    ],
)
def test_what_git_says_is_printable_and_without_credentials(tmp_path: Path, said: bytes, shown: str) -> None:
    (tmp_path / "log").write_bytes(said)
    assert reason_of(tmp_path / "log") == shown


@pytest.fixture
def files() -> Iterator[RangeServer]:
    with range_server() as running:
        running.files["a.tar"] = tar_of(member("top/x.c", b"x\n"))
        yield running


def test_tarballs_are_downloaded(tmp_path: Path, files: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"tarball": f"{files.url}/a.tar", "commit": COMMIT, "name": "a"}
    files.script += ["redirect /a.tar", "200"]
    acquire(tmp_path / "out", entry)
    assert texts(tmp_path / "out") == {"x.c": "x\n"}
    files.stall = 3.0
    faults = {
        "redirect file:///etc/hosts": "status 302",
        "redirect http://other.invalid/": "cannot be reached: redirected to a protocol other than https",
        "404": "status 404",
        "503": "status 503",
        "reset": "it broke off|cannot be reached",
        "short": "it broke off|arrived",
        "not http": "it broke off",
        "stall": "it broke off|cannot be reached",
    }
    for fault, message in faults.items():
        files.script = deque([fault])
        with pytest.raises(RepositoryError, match=message):
            acquire(tmp_path / "failed", entry, timeout=0.3)
    monkeypatch.setattr(tarballs.download, "__defaults__", (1000,))
    with pytest.raises(RepositoryError, match="more than 0 MiB arrived"):
        acquire(tmp_path / "failed", entry)
    assert not (tmp_path / "failed").exists()
