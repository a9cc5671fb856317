"""Our writers keep what `refinery.testing.WriterTests` asks, and writers that do not are found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pytest

from refinery.pipelines.recipe.writers import own_writers
from refinery.testing import WriterTests
from refinery.transforms.core.stage import ShardContent, Writer

CALLS = count()


# Of those that write the documents: shards of `as-input` are their provenance alone.
@pytest.fixture(params=[name for name, writer in own_writers().items() if writer.files])
def _writer(request: pytest.FixtureRequest) -> None:
    TestOurs.writer = own_writers()[request.param]


@pytest.mark.usefixtures("_writer")
class TestOurs(WriterTests):
    writer = own_writers()["megatron"]


def write_lines(paths: Mapping[str, Path], shard: ShardContent) -> None:
    with paths["text"].open("wb") as file:
        for text in shard.contents():
            file.write(orjson.dumps({"text": text.decode()}, option=orjson.OPT_APPEND_NEWLINE))


def read_lines(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    for line in files["text"]:
        yield orjson.loads(line)["text"].encode()


LINES = Writer(
    name="lines", version=1, summary="Lines.", files={"text": ".jsonl"}, write=write_lines, read=read_lines
)  # fmt: skip


class TestLines(WriterTests):
    writer = LINES


def without_the_last(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    yield from list(read_lines(files))[:-1]


def stripped(paths: Mapping[str, Path], shard: ShardContent) -> None:
    write_lines(paths, replace(shard, contents=lambda: (text.strip() for text in shard.contents())))


def unsorted(paths: Mapping[str, Path], shard: ShardContent) -> None:
    write_lines(paths, replace(shard, contents=lambda: iter(sorted(shard.contents()))))


def numbered(paths: Mapping[str, Path], shard: ShardContent) -> None:
    with paths["text"].open("wb") as file:
        for text in shard.contents():
            line = {"text": text.decode(), "at": next(CALLS)}
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def lenient(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    """Takes what is cut off for a text."""
    try:
        yield from read_lines(files)
    except ValueError:
        yield b""


def nothing(paths: Mapping[str, Path], shard: ShardContent) -> None:
    paths["text"].write_bytes(b"")


READ_BACK, ONE = "test_documents_are_read_back_as_they_were_written", "test_a_shard_of_one_document"
BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "a document too few": ({"read": without_the_last}, READ_BACK, "39 documents read, 40 written"),
    "other texts": ({"write": stripped}, READ_BACK, r"document \d+: b'spaces"),
    "an order of its own": ({"write": unsorted}, READ_BACK, "document 0: "),
    "nothing written": ({"write": nothing}, ONE, "read of one document"),
    "other bytes": ({"write": numbered}, "test_the_same_documents_give_the_same_bytes", "text: two files"),
    "a text made of what is cut off": ({"read": lenient}, "test_a_file_that_is_cut_off", "text cut at"),
    "a function without a name": (
        {"read": lambda files: read_lines(files)},
        "test_it_can_be_sent_to_another_process",
        "functions have to be those of a module",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_writers_are_found(name: str, tmp_path: Path) -> None:
    changes, test, message = BROKEN[name]
    broken: Any = type("Broken", (WriterTests,), {"writer": replace(LINES, **changes)})()
    run: Callable[..., None] = getattr(broken, test)
    with pytest.raises(AssertionError, match=message):
        run(*([] if "process" in test else [tmp_path]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Lines"}, "writer: name 'Lines' given"),
        ({"version": 0}, "writer lines: version 0 given, 1 or more is allowed"),
        ({"files": [".jsonl"]}, r"writer lines: files \['.jsonl'\] given, kind -> ending is allowed"),
        ({"files": {f"k{n}": f".{n}" for n in range(9)}}, r"writer lines: files: kinds \['k0', .*\] given, 1 to 8"),
        ({"files": {"bin": ".bin"}}, "writer lines: files: kind 'bin' given, a lower-case name other than bin"),
        ({"files": {"text": "jsonl"}}, "writer lines: files: ending 'jsonl' given, such as '.jsonl.zst' is allowed"),
        ({"files": {"a": ".x", "b": ".x"}}, "writer lines: files: one ending given twice"),
        ({"read": None}, "writer lines: read None given, a function is needed"),
        ({"counts_tokens": True}, "writer lines: one of counts_tokens and state given, both or none are needed"),
    ],
)
def test_a_wrong_declaration_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(LINES, **changes)
