"""The document that a token is in: at every border, in every row group, and what is said of places that are none."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.trace.answers import Kept, Query
from refinery.pipelines.corpus.trace.by_token import find_shard
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.published.shard_tokens import find_token, read_row
from tests.corpus_factory import BOS, EOS, build_corpus, edit_manifest

SHARD = "train/web/shard-00000-of-00003"
CODE = "train/code/shard-00000-of-00001"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return build_corpus(tmp_path / "corpus")


def cut_row_groups(root: Path, name: str, rows: int) -> None:
    path = root / f"{name}.provenance.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=rows)
    edit_manifest(root)


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("ends", [(BOS, EOS), (None, None)])
def test_every_token_of_a_shard(tmp_path: Path, rows: int, ends: tuple[int | None, int | None]) -> None:
    """Without BOS and EOS the empty text of the second shard has no token."""
    root = build_corpus(tmp_path / "corpus", bos=ends[0], eos=ends[1])
    name = "train/web/shard-00001-of-00003"
    cut_row_groups(root, name, rows)
    corpus = Corpus(str(root))
    shard = find_shard(corpus.manifest, name)
    table = pq.read_table(root / f"{name}.provenance.parquet").to_pylist()
    owners = [number for number, row in enumerate(table) for _ in range(row["token_count"])]
    assert len(owners) == shard.tokens
    for offset in {0, 1, shard.tokens - 1, *(row["token_offset"] for row in table if row["token_count"])}:
        number, row = find_token(corpus, shard, offset)
        assert (number, row["id"]) == (owners[offset], table[owners[offset]]["id"])
    for number, row in enumerate(table):
        assert read_row(corpus, shard, number)["id"] == row["id"]


def test_the_text_around_it(corpus: Path) -> None:
    ((_, answer),) = trace(str(corpus), [Query("token", f"{CODE}:{1 + len('int ')}")]).answers
    assert isinstance(answer, Kept) and answer.around is not None
    around = answer.around
    assert (around.before, around.text, around.after) == ("int ", "m", "ain(void) { return 0; }")
    assert around.token == ord("m")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "--token: '' given"),
        ("7", "SHARD:OFFSET is allowed"),
        (":7", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:-1", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:+1", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:1e3", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:\u0661", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:{'9' * 40}", "SHARD:OFFSET is allowed"),
        (f"{SHARD}:999999", "0 to "),
        ("../corpus/train/web/shard-00000-of-00003:1", "no shard of the corpus has this name"),
        (f"/{SHARD}:1", "no shard of the corpus has this name"),
        ("/etc/passwd:1", "no shard of the corpus has this name"),
        ("\x1b[2J:1", r"--token '\x1b[2J': no shard"),
        ("manifest.json:1", "no shard of the corpus has this name"),
        ("3:1", "no shard of the corpus has this name"),
        ("0:1", "several shards have this number"),
        (f"{'9' * 30}:1", "no shard of the corpus has this name"),
    ],
)
def test_places_that_are_none(corpus: Path, capsys: pytest.CaptureFixture[str], place: str, message: str) -> None:
    for command in ("trace", "show"):
        assert execute([command, str(corpus), "--token", place]) == 2
        said = capsys.readouterr()
        assert message in said.err and said.err.count("\n") == 1 and said.out == ""
        assert said.err.strip().isprintable()


def test_names_that_mean_a_shard(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_manifest(corpus, lambda m: m.update(shards=[s for s in m["shards"] if s["domain"] != "code"]))
    for name in (SHARD, f"{SHARD}.bin", f"{SHARD}.idx", "0", "00"):
        assert execute(["trace", str(corpus), "--token", f"{name}:3", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["shard"] == SHARD


def test_damage_is_named(corpus: Path) -> None:
    path = corpus / f"{SHARD}.bin"
    data = path.read_bytes()
    path.write_bytes(data[:10])
    with pytest.raises(FormatError, match=r"shard-00000-of-00003.bin: ends before token"):
        trace(str(corpus), [Query("token", f"{SHARD}:9")])
    path.write_bytes(b"\xff" * len(data))
    with pytest.raises(ValueError, match="id 65535 given"):
        trace(str(corpus), [Query("token", f"{SHARD}:9")])
    table = pq.read_table(corpus / f"{SHARD}.provenance.parquet")
    pq.write_table(table.slice(0, 1), corpus / f"{SHARD}.provenance.parquet")
    with pytest.raises(FormatError, match="no document has token 38"):
        trace(str(corpus), [Query("token", f"{SHARD}:38")])
