"""What a writer states in a manifest: of tokens, or of texts, which have none."""

from typing import Any

import pytest

from refinery.loader.errors import FormatError, NoTokens
from refinery.loader.format.manifest import Manifest, parse_manifest
from refinery.loader.format.publish_manifest import MadeManifest, make_manifest, seal_listed
from refinery.loader.format.shard_list import HeldListings, as_shards

SUM = {"crc32c": "00000000", "sha256": "0" * 64}
STATED = [{"kind": "text", "ending": ".txt"}]


def shard(index: int, **changes: Any) -> dict[str, Any]:
    name = f"train/web/shard-{index:05d}-of-00002"
    files = {
        "provenance": {"path": f"{name}.provenance.parquet", "size": 5, **SUM},
        "text": {"path": f"{name}.txt", "size": 7, **SUM},
    }
    place = {"split": "train", "domain": "web", "index": index, "count": 2, "documents": 3}
    return {**place, "kinds": ["text", "provenance"], "files": files, **changes}


def payload(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "refinery-corpus", "name": "n", "lane": "texts:LANE", "writer": "lines", "shard_files": STATED,
        "stages": [], "columns": [], "fingerprint": "f", "shards": [shard(0), shard(1)],
        "files": [{"path": "_run.json", "size": 1, **SUM}], "totals": {"documents": 6, "bytes": 14}, "funnel": [],
        "recipe": {}, "versions": {}, **changes,
    }  # fmt: skip


def made(**changes: Any) -> MadeManifest:
    return make_manifest(payload(**changes))


def test_a_manifest_of_texts() -> None:
    manifest = made().manifest
    assert not manifest.has_tokens and manifest.written.kinds == ("text", "provenance")
    assert manifest.totals == {"documents": 6, "bytes": 14}
    first, second = manifest.shards
    assert (first.name, second.documents) == ("train/web/shard-00000-of-00002", 3)
    assert [file.path.partition(".")[2] for file in first.files] == ["txt", "provenance.parquet"]
    assert as_shards(manifest.shards).counts("documents").tolist() == [3, 3]
    assert b"tokens" not in made().sealed


@pytest.mark.parametrize("name", ["dtype", "dtype_code", "tokenizer", "tokens"])
def test_it_states_nothing_of_tokens(name: str) -> None:
    with pytest.raises(
        NoTokens, match=r"manifest.json of 'n': texts without tokens, which are needed here; run `refinery tokenize"
    ):
        getattr(made().manifest, name)


@pytest.mark.parametrize(
    "use",
    [
        lambda manifest: manifest.shards[0].bin,
        lambda manifest: manifest.shards[0].idx,
        lambda manifest: manifest.shards[0].tokens,
        lambda manifest: manifest.shards.counts("tokens"),
        lambda manifest: manifest.shards.paths(),
        lambda manifest: manifest.shards.sizes(),
    ],
)
def test_its_shards_have_none(use: Any) -> None:
    with pytest.raises(NoTokens):
        use(made().manifest)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ([], r"kinds \[\] given, 1 to 8 different ones are allowed"),
        ([*STATED, *STATED], "different ones are allowed"),
        ([{"kind": "bin", "ending": ".txt"}], "kind 'bin' given"),
        ([{"kind": "../text", "ending": ".txt"}], "kind '../text' given"),
        ([{"kind": "text", "ending": "/../txt"}], "ending '/../txt' given"),
        ([{"kind": "text", "ending": ".provenance.parquet"}], "ending '.provenance.parquet' given"),
        ([{"kind": "text"}], r"shard_files\[0\]: ending is None, a string expected"),
        ({"text": ".txt"}, "shard_files is .*, a list expected"),
    ],
)
def test_a_wrong_statement_is_named(stated: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        made(shard_files=stated)


def test_an_unknown_writer_that_states_nothing() -> None:
    given = payload()
    del given["shard_files"]
    with pytest.raises(FormatError, match="writer is 'lines', this reader supports 'megatron', and any with"):
        make_manifest(given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": 9}, "tokens found in a corpus of texts, none expected"),
        ({"kinds": ["provenance", "text"]}, "2 shards found, 2 expected"),
        ({"files": {"text": shard(0)["files"]["text"]}}, "a shard without provenance after its text found"),
    ],
)
def test_a_wrong_listing_is_named(changes: dict[str, Any], message: str) -> None:
    sealed, listings = seal_listed(payload(shards=[shard(0, **changes), shard(1, **changes)]))
    with pytest.raises(FormatError, match=message):
        manifest: Manifest = parse_manifest(sealed, listings=HeldListings(listings))
        manifest.load()
