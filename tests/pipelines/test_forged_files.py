"""A forged Parquet file of a corpus, whose checksum is right: every tool refuses it, in the same words."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.format.provenance import PARQUET
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.pipelines.audit.forging import copy_of, provenance_files, seal_again
from tests.sampling import sampled

BOMB = 80 << 20  # bytes of one value, which a page of some kilobytes holds


@pytest.fixture(scope="module")
def forged(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with one page in each provenance file that inflates to far more than any writer's. The manifest lists
    the files as they are."""
    root = copy_of(corpus, tmp_path_factory.mktemp("forged") / "corpus")
    for path in provenance_files(root):
        table = pq.read_table(path)
        for name in ("url", "origin"):
            long = [f"{value}{' ' * BOMB}" if row == 0 else value for row, value in enumerate(table[name].to_pylist())]
            table = table.set_column(table.column_names.index(name), table.schema.field(name), pa.array(long))
        pq.write_table(table, path, **{**PARQUET, "data_page_size": 1 << 30})
        assert path.stat().st_size < 1 << 20
    seal_again(root)
    return root


COMMANDS: dict[str, list[str]] = {
    "trace": ["trace", "{corpus}", "--url", "{url}"],
    "sample": ["sample", "{corpus}", "-n", "3"],
    "show": ["show", "{corpus}", "--token", "{shard}:5"],
    "compare": ["compare", "{corpus}", "{honest}", "--replay", "0"],
    "audit": ["audit", "{corpus}", "--sample", "1"],
    "export": ["export", "{corpus}", "--to", "jsonl", "--output", "{out}", "--workers", "0"],
    "mix": ["mix", "{recipe}", "--output", "{out}/view", "--workers", "0"],
    "remove": ["remove", "{corpus}", "--urls", "{list}", "--output", "{out}/new", "--workers", "0"],
}


@pytest.mark.parametrize("command", sampled("tools that refuse forged files", COMMANDS, 4))
def test_it_is_refused(
    command: str, forged: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = provenance_files(forged)[0].relative_to(forged).as_posix().removesuffix(".provenance.parquet")
    url = pq.read_table(provenance_files(corpus)[0], columns=["url"])["url"][1].as_py()
    (tmp_path / "urls.txt").write_text(f"{url}\n")
    view = {
        "name": "half",
        "corpora": {"a": str(forged)},
        "domains": [{"name": "web", "parts": ["a"], "where": 'url != ""'}],
    }
    (tmp_path / "view.yaml").write_text(yaml.safe_dump(view))
    places = {"corpus": forged, "honest": corpus, "out": tmp_path / "out", "list": tmp_path / "urls.txt", "url": url}
    places["recipe"] = tmp_path / "view.yaml"
    arguments = [word.format(**places, shard=shard) for word in COMMANDS[command]]
    code = execute(arguments)
    said = capsys.readouterr()
    assert code in (ExitCode.FAILED, ExitCode.USAGE), said.out
    assert "has a page of" in said.err and "or less expected" in said.err, said.err
