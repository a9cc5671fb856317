"""A corpus as a data set of a hub: what goes there, to whom it may be written, and that no token is shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest

from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageError
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.export.push.hub_files import PUBLISHED, HubFiles, files_of_corpus
from refinery.pipelines.corpus.export.push.push_hub import MARKER, check_push, push_to_hub
from tests.fake_hub import FakeHub, commit, fake_hub
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import command

TOKEN = "hf_" + "x" * 34
NAME = "org/corpus"
# huggingface_hub 2.4 sends large files in a way that its HTTP library discourages; nothing of ours can change that.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub() as server:
        server.token = TOKEN
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        yield server


@pytest.fixture(scope="module")
def prefix(small: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with rejects and dead letters, whose excerpts are texts."""
    output = tmp_path_factory.mktemp("push") / "out"
    settings = ("rejects.rate=1.0", "rejects.excerpt_chars=300", "url.blocked_domains=[a.example]")
    more = [word for setting in settings for word in ("--set", setting)]
    assert forks.run(*command(small, output, *more)).code == 0
    return output


def held(hub: FakeHub, name: str = NAME) -> dict[str, bytes]:
    return hub.files[name, hub.branches[name, "main"]]


def test_card_pushes_card_manifest_report_and_shards(
    hub: FakeHub, prefix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["card", str(prefix), "--push", "hub", NAME]) == 0
    said = capsys.readouterr()
    assert f"{hub.url}/datasets/{NAME}" in said.out and "a new private data set" in said.out
    assert TOKEN not in said.out + said.err
    assert hub.private[NAME] is True
    files = held(hub)
    folders = {path.split("/")[0] for path in files}
    assert folders <= {
        *(".gitattributes", MARKER, "README.md", "manifest.json", "report.html"),
        *("train", "validation", "tokenizer", "manifests"),
    }
    assert files["manifest.json"] == (prefix / "manifest.json").read_bytes()
    for path in sorted((prefix / "train").rglob("*")):
        if path.is_file():
            assert files[path.relative_to(prefix).as_posix()] == path.read_bytes()
    assert files["README.md"].startswith(b"---\n")
    for folder in ("rejects", "dead_letters", "lookup", "work"):
        assert (prefix / folder).is_dir()
    assert not PUBLISHED & {"rejects", "dead_letters", "lookup", "work", "removals"}
    assert b"Documents to read" in (prefix / "report.html").read_bytes()  # what is dropped is quoted there
    assert b"Documents to read" not in files["report.html"]
    assert b"word7 word8" in (prefix / "report.html").read_bytes()
    assert b"word7 word8" not in files["report.html"]
    listed = json.loads(files[MARKER])
    assert set(listed["files"]) == set(files) - {MARKER, ".gitattributes"}


def test_the_same_again_sends_no_large_file_twice_and_removes_what_is_gone(hub: FakeHub, prefix: Path) -> None:
    store, said = open_store(str(prefix)), []
    files = files_of_corpus(store)
    push_to_hub(store, files, NAME, True, said.append)
    assert hub.private[NAME] is False
    before, uploads = held(hub), [each.path for each in hub.hub.requests if each.method == "PUT"]
    assert uploads
    extra = HubFiles(files.name, files.fingerprint, files.stored, {**files.made, "old.txt": b"x"})
    push_to_hub(store, extra, NAME, False, said.append)
    assert held(hub)["old.txt"] == b"x"
    push_to_hub(store, files, NAME, False, said.append)
    assert held(hub) == before
    assert [each.path for each in hub.hub.requests if each.method == "PUT"] == uploads
    assert hub.private[NAME] is False  # as it was made


@pytest.mark.parametrize("files", [{}, {"README.md": b"mine"}, {MARKER: b"{}"}, {MARKER: b'{"kind": "other"}'}])
def test_a_repository_of_somebody_else_stays_as_it_is(hub: FakeHub, prefix: Path, files: dict[str, bytes]) -> None:
    hub.put(NAME, commit(7), files)
    store = open_store(str(prefix))
    with pytest.raises(ValueError, match="was not made by --push: choose another name"):
        push_to_hub(store, files_of_corpus(store), NAME, False, print)
    assert held(hub) == files
    assert hub.commits == []


def test_a_refused_token_is_said_and_not_shown(hub: FakeHub, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = TOKEN[::-1]
    store = open_store(str(prefix))
    with pytest.raises(StorageError, match="status 401; HF_TOKEN is needed") as error:
        push_to_hub(store, HubFiles("n", "f", ()), NAME, False, print)
    assert TOKEN not in str(error.value)


def test_what_stops_a_push_before_it_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert check_push(["hub", NAME]) == NAME
    assert check_push(None) == ""
    with pytest.raises(ValueError, match="hub is allowed"):
        check_push(["s3", NAME])
    for name in ("name", "a/b/c", "../x", "a/", "https://hub/a", "a/b\n"):
        with pytest.raises(ValueError, match="ORGANISATION/NAME is allowed"):
            check_push(["hub", name])
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(ValueError, match="HF_TOKEN is needed"):
        check_push(["hub", NAME])
    assert execute(["card", str(tmp_path), "--public"]) == 2


def test_export_pushes_what_it_wrote(
    hub: FakeHub, prefix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "export")
    words = ["export", str(prefix), "--format", "huggingface", "--output", output, "--workers", "0"]
    assert execute([*words, "--push", "hub", NAME]) == 0, capsys.readouterr().err
    there = {path.relative_to(output).as_posix() for path in Path(output).rglob("*") if path.is_file()}
    assert set(held(hub)) - {MARKER, ".gitattributes"} == {name for name in there if name.split("/")[0] != "_run.json"}
    assert TOKEN not in capsys.readouterr().out
