"""The words behind Megatron's --data-path, and Megatron's way of reading them."""

from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.adopt.blend import blend, parse_weights
from tests.pipelines.inputs import run


def parsed(words: list[str]) -> dict[str, float]:
    """As Megatron's parser does: pairs of a weight and a prefix (megatron.core.datasets.utils)."""
    return {path: float(weight) for weight, path in zip(words[::2], words[1::2], strict=True)}


def test_every_token_weighs_the_same(corpus: Path) -> None:
    shards = [
        shard for shard in read_manifest(open_store(str(corpus))).shards if shard.split == "train" and shard.tokens
    ]
    found = parsed(blend(str(corpus)))
    assert found == {str(corpus / shard.bin.path).removesuffix(".bin"): shard.tokens for shard in shards}
    assert all(Path(f"{path}.bin").is_file() and Path(f"{path}.idx").is_file() for path in found)


def test_domains_weigh_what_is_asked(corpus: Path) -> None:
    shards = [
        shard for shard in read_manifest(open_store(str(corpus))).shards if shard.split == "train" and shard.tokens
    ]
    weights = {domain: 1.0 + number for number, domain in enumerate(sorted({shard.domain for shard in shards}))}
    found = parsed(blend(str(corpus), weights=weights))
    for domain, weight in weights.items():
        own = [value for path, value in found.items() if f"/train/{domain}/" in path]
        assert sum(own) == pytest.approx(weight)
    with pytest.raises(ValueError, match=r"--weight: x given, the domains .* need one each"):
        blend(str(corpus), weights={"x": 1.0})


def test_the_command_prints_one_line(corpus: Path) -> None:
    assert run("blend", corpus).stdout == " ".join(blend(str(corpus))) + "\n"
    wrong = run("blend", corpus, "--split", "test", check=False)
    assert (wrong.returncode, wrong.stderr) == (2, "refinery: --split: 'test' given, train or validation is allowed\n")


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises((FormatError, OSError)):
        blend(str(tmp_path))


@pytest.mark.parametrize("given", [["x"], ["=1"], ["x=0"], ["x=-1"], ["x=inf"], ["x=nan"], ["x=1", "x=2"]])
def test_weights_that_are_none(given: list[str]) -> None:
    with pytest.raises(ValueError, match="DOMAIN=NUMBER is allowed"):
        parse_weights(given)
    assert parse_weights(["a=b=2", "c=0.5"]) == {"a=b": 2.0, "c": 0.5}
