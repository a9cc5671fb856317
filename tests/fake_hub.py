"""The Hugging Face hub's protocol on this machine: revisions, trees in pages, "resolve" with redirects to another host
for large files, tokens; and that other host, whose answers can be scripted to fail. Repositories can be made and
committed to, large files by git's LFS."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loader.range_server import RangeServer, range_server
from tests.lying_server import Answer, LyingServer, Request, answer, lying_server

PAGE = 2  # files of one page of a tree
LARGE = (".parquet", ".gz", ".zst")  # kept as large files


def commit(number: int) -> str:
    return hashlib.sha1(b"commit %d" % number).hexdigest()  # noqa: S324 - as git does


@dataclass
class FakeHub:
    """files: (data set, commit) -> path -> bytes. branches: (data set, branch) -> commit. token: what gated data sets
    ask for. hub: the API and "resolve"; store: where large files are. wrong: paths whose listed SHA-256 is another."""

    hub: LyingServer
    store: RangeServer
    files: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    branches: dict[tuple[str, str], str] = field(default_factory=dict)
    token: str = ""
    wrong: set[str] = field(default_factory=set)
    faults: list[int] = field(default_factory=list)  # statuses of the next answers of the API
    signature: int = 0  # in the addresses of large files; older ones have expired
    private: dict[str, bool] = field(default_factory=dict)  # data sets that were made here
    uploaded: dict[str, bytes] = field(default_factory=dict)  # SHA-256 -> a large file
    commits: list[str] = field(default_factory=list)  # their messages

    @property
    def url(self) -> str:
        return self.hub.url

    def put(self, name: str, revision: str, files: dict[str, bytes], branch: str = "main") -> None:
        self.files[name, revision] = files
        self.branches[name, branch] = revision
        for path, data in files.items():
            if path.endswith(LARGE):
                self.store.files[f"{name}/{revision}/{path}"] = data

    def act(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        if self.faults and parts.path.startswith("/api/"):
            return answer({"error": "busy"}, self.faults.pop(0))
        if request.method in ("POST", "PUT"):
            return self.write(parts.path, request)
        api = re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+)(?:/(.*))?)?", parts.path)
        resolve = re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", parts.path)
        found = api or resolve
        name = found[1] if found else ""
        if not any(name == known for known, _ in self.files):
            return answer({"error": "Repository not found"}, 404, **{"X-Error-Code": "RepoNotFound"})
        if self.token and request.headers.get("authorization", request.headers.get("Authorization")) != (
            f"Bearer {self.token}"
        ):
            return answer({"error": "gated"}, 403, **{"X-Error-Code": "GatedRepo"})
        if resolve:
            return self.resolve(name, resolve[2], unquote(resolve[3]), request)
        assert api
        revision = unquote(api[3] or "main")
        revision = self.branches.get((name, revision), revision)
        if (name, revision) not in self.files:
            return answer({"error": "Invalid rev id"}, 404, **{"X-Error-Code": "RevisionNotFound"})
        if api[2] != "tree":
            return answer({"id": name, "sha": revision, "private": False, "tags": [], "downloads": 0, "likes": 0})
        return self.tree(name, revision, unquote(api[4] or ""), parse_qs(parts.query))

    def tree(self, name: str, revision: str, folder: str, query: dict[str, list[str]]) -> Answer:
        files = {p: d for p, d in self.files[name, revision].items() if not folder or p.startswith(f"{folder}/")}
        if folder and not files:
            return answer({"error": "Entry not found"}, 404, **{"X-Error-Code": "EntryNotFound"})
        entries = [{"type": "directory", "oid": "d" * 40, "size": 0, "path": folder or "data"}]
        for path, data in sorted(files.items()):
            entry = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}  # noqa: S324
            if path.endswith(LARGE):
                digest = hashlib.sha256(data + b"!" * (path in self.wrong)).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 130}  # type: ignore[assignment]
            entries.append(entry)
        start = int(query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(entries):
            where = f"{self.url}/api/datasets/{name}/tree/{revision}/{folder}".rstrip("/")
            headers["Link"] = f'<{where}?recursive=True&cursor={start + PAGE}>; rel="next"'
        return 200, {"Content-Type": "application/json", **headers}, json.dumps(entries[start : start + PAGE]).encode()

    def write(self, path: str, request: Request) -> Answer:
        """What changes a repository. Without the token nothing does."""
        if request.method == "PUT":
            assert hashlib.sha256(request.body).hexdigest() == path.rpartition("/")[2]
            self.uploaded[path.rpartition("/")[2]] = request.body
            return 200, {}, b""
        headers = {key.lower(): value for key, value in request.headers.items()}
        if not self.token or headers.get("authorization") != f"Bearer {self.token}":
            return answer({"error": "Invalid credentials"}, 401)
        if path == "/api/validate-yaml":
            return answer({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(request.body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            if any(name == known for known, _ in self.files):
                return answer({"error": "You already created this dataset repo"}, 409)
            self.private[name] = asked.get("private") is True or asked.get("visibility") == "private"
            self.put(name, commit(0), {".gitattributes": b""})
            return answer({"url": f"{self.url}/datasets/{name}"})
        found = re.fullmatch(
            r"/(?:api/)?datasets/([^/]+/[^/.]+)(\.git/info/lfs/objects/batch|/preupload/main|/commit/main)", path
        )
        assert found, path
        if found[2].startswith("/preupload"):
            modes = {name: "lfs" if name.endswith(LARGE) else "regular" for name in self.names(request)}
            return answer({"files": [{"path": p, "uploadMode": m, "shouldIgnore": False} for p, m in modes.items()]})
        if found[2].startswith(".git"):
            wanted = json.loads(request.body)["objects"]
            return answer({"transfer": "basic", "objects": [self.action(each) for each in wanted]})
        return self.commit(found[1], request)

    def names(self, request: Request) -> list[str]:
        return [each["path"] for each in json.loads(request.body)["files"]]

    def action(self, wanted: dict[str, object]) -> dict[str, object]:
        is_there = wanted["oid"] in self.uploaded
        return {**wanted, **({} if is_there else {"actions": {"upload": {"href": f"{self.url}/lfs/{wanted['oid']}"}}})}

    def commit(self, name: str, request: Request) -> Answer:
        files = dict(self.files[name, self.branches[name, "main"]])
        for line in request.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                self.commits.append(value["summary"])
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.uploaded[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        revision = commit(len(self.commits))
        self.put(name, revision, files)
        return answer({"success": True, "commitOid": revision, "commitUrl": f"{self.url}/datasets/{name}/commit/x"})

    def resolve(self, name: str, revision: str, path: str, request: Request) -> Answer:
        revision = self.branches.get((name, revision), revision)
        data = self.files.get((name, revision), {}).get(path)
        if data is None:
            return answer({"error": "Entry not found"}, 404, **{"X-Error-Code": "EntryNotFound"})
        if path.endswith(LARGE):
            return 302, {"Location": f"{self.store.url}/{name}/{revision}/{path}?Signature={self.signature}"}, b""
        ranged = {key.lower(): value for key, value in request.headers.items()}.get("range", "")
        if not ranged:
            etag = f'"{hashlib.sha1(data).hexdigest()}"'  # noqa: S324 - as git does
            return 200, {"ETag": etag, "X-Repo-Commit": revision}, data
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        assert asked
        start, stop = int(asked[1]), min(int(asked[2]) + 1, len(data))
        tag = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"'}  # noqa: S324
        if stop - start == len(data):
            return 200, tag, data
        return 206, {**tag, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}, data[start:stop]


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A running one."""
    with lying_server() as hub, range_server() as store:
        fake = FakeHub(hub, store)
        hub.act = fake.act
        yield fake
