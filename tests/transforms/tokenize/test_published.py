"""tokenizer/ of a corpus, read by transformers and in Megatron's way; names of Hugging Face repositories."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from refinery.transforms.core.hub_file import parse_hub, read_hub_file
from refinery.transforms.tokenize.encode import TokenizerParams, check_tokenizer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.published import published_files
from tests.sampling import one_commit_in_four
from tests.transforms.tokenizer_files import END, added, all_pairs, byte_level_spec, sentencepiece_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["the cat  sat\non the mat", "naïve 中文 😀 <|endoftext|>"]


def spec_with_ends() -> dict[str, Any]:
    return byte_level_spec(all_pairs("thecats "), added_tokens=[added(0, END), added(7000, "<s>")])


def write_published(folder: Path, bos: str | None, eos: str | None) -> Path:
    data = json.dumps(spec_with_ends()).encode()
    (folder / "source.json").write_bytes(data)
    info = check_tokenizer(TokenizerParams(path=str(folder / "source.json"), bos=bos, eos=eos))
    for name, content in published_files("source.json", data, info.bos_id, info.eos_id).items():
        (folder / name).write_bytes(content)
    return folder


@one_commit_in_four
@pytest.mark.parametrize(("bos", "eos"), [("<s>", END), (None, END), ("<s>", None)])
def test_transformers_loads_it(tmp_path: Path, bos: str | None, eos: str | None) -> None:
    """As AutoTokenizer does, which Megatron's HuggingFaceTokenizer calls: eod is eos_token_id, vocab_size is len."""
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(write_published(tmp_path, bos, eos)), local_files_only=True)
    ours = load_tokenizer(str(tmp_path / "source.json"))
    assert (theirs.bos_token, theirs.eos_token) == (bos, eos)
    assert theirs.bos_token_id == (None if bos is None else ours.token_id(bos))
    assert theirs.eos_token_id == (None if eos is None else ours.token_id(eos))
    assert len(theirs) == ours.vocab_size
    assert theirs.encode(TEXTS[0], add_special_tokens=False) == ours.encode(TEXTS[0]).tolist()
    assert theirs.decode(ours.encode(TEXTS[0])) == TEXTS[0]


def test_a_sentencepiece_model_stays_alone() -> None:
    data = sentencepiece_model()
    assert published_files("x/y.model", data, 1, 2) == {"tokenizer.model": data}


class Hub(BaseHTTPRequestHandler):
    """The two requests that a file of a repository takes."""

    files: ClassVar = {
        f"/org/name/resolve/{COMMIT}/tokenizer.json": json.dumps(spec_with_ends()).encode(),
        f"/datasets/org/name/resolve/{COMMIT}/items.jsonl": b'{"question": "?"}',
    }

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        data = self.files.get(self.path)
        self.send_response(200 if data else 404)
        if data is None:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"0123456789"')
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        if body and data:
            self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    yield
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_tokenizer_of_a_repository(hub: None) -> None:
    path = f"hf://org/name@{COMMIT}"
    assert read_hub_file(path) == Hub.files[f"/org/name/resolve/{COMMIT}/tokenizer.json"]
    info = check_tokenizer(TokenizerParams(path=path, bos="<s>"))
    assert (info.engine, info.eos_id) == ("byte-level-bpe", 0)
    assert set(published_files(path, read_hub_file(path), info.bos_id, info.eos_id)) == {
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_a_commit_that_is_there_needs_no_hub(hub: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"hf://org/name@{COMMIT}"
    data = read_hub_file(path)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    assert read_hub_file(path) == data
    with pytest.raises(OSError, match=rf"^{path}/other\.json: http://127\.0\.0\.1:\d+ gives no answer \(") as error:
        read_hub_file(f"{path}/other.json")
    assert "\n" not in str(error.value)


def test_a_file_of_a_data_set(hub: None) -> None:
    assert read_hub_file(f"hf://datasets/org/name@{COMMIT}/items.jsonl") == b'{"question": "?"}'


def test_a_file_that_the_repository_lacks(hub: None) -> None:
    with pytest.raises(OSError, match=rf"^hf://org/name@{COMMIT}/other\.model: ") as error:
        read_hub_file(f"hf://org/name@{COMMIT}/other.model")
    assert "\n" not in str(error.value)
    with pytest.raises(
        ValueError, match=rf"path: 'hf://org/name@{COMMIT}/other\.model' given, which cannot be read \("
    ):
        load_tokenizer(f"hf://org/name@{COMMIT}/other.model")


@pytest.mark.parametrize(
    "path", ["hf://org/name", "hf://org/name@main", f"hf://org/name@{COMMIT[1:]}", "hf://", "hf://a/b/c/d"]
)
def test_only_a_commit_is_a_version(path: str) -> None:
    with pytest.raises(ValueError, match="with the 40 digits of a commit: its files never change"):
        load_tokenizer(path)


def test_names_of_repositories() -> None:
    assert parse_hub(f"hf://gpt2@{COMMIT}") == ("gpt2", COMMIT, "tokenizer.json")
    assert parse_hub(f"hf://org/name@{COMMIT}/a/b.model") == ("org/name", COMMIT, "a/b.model")
    assert parse_hub(f"hf://datasets/org/name@{COMMIT}/a/b.jsonl") == ("org/name", COMMIT, "a/b.jsonl")
    with pytest.raises(ValueError, match=r"; a Hugging Face id is written hf://org/name@COMMIT\)"):
        load_tokenizer("org/name")
