"""`refinery remove`: what goes, what comes back, and that it is what a run without these documents would have made."""

from pathlib import Path

import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.commands.verify import verify
from tests.pipelines.inputs import corpus_bytes
from tests.pipelines.takedown.conftest import Place
from tests.pipelines.takedown.corpora import remove, rows, write_list

SHARDS = ("train", "validation", "removals")


def urls(prefix: Path) -> set[str]:
    return {row["url"] for row in rows(prefix)}


def only_shards(prefix: Path) -> dict[str, str]:
    return {name: sha for name, sha in corpus_bytes(prefix).items() if name.split("/")[0] in SHARDS}


@pytest.mark.parametrize(
    "asked",
    [
        ["https://a.example/1"],  # a survivor of near duplicates, of which one comes back and stands for the other
        ["https://b.example/1", "https://b.example/copy"],  # a copy of a survivor in another source comes back
        ["https://c.example/near", "https://site12.example/12"],  # one that was removed, and one without duplicates
        ["https://a.example/2", "https://mirror.example/a"],  # only removed ones: their survivor's count is less
    ],
)
def test_as_a_run_without_them(asked: list[str], taken: Place, tmp_path: Path) -> None:
    """With --copies keep: byte for byte, shards and removals."""
    list_ = write_list(tmp_path / "urls.txt", asked)
    remove(taken.prefix, tmp_path / "new", "--urls", list_, "--copies", "keep")
    again = taken.again(tmp_path / "again", asked)
    assert verify(str(tmp_path / "new")).failures == []
    assert only_shards(tmp_path / "new") == only_shards(again)
    both = [read_manifest(open_store(str(tmp_path / name))).totals for name in ("new", "again")]
    assert both[0] == both[1]
