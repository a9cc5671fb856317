"""Cards of the small corpus, of one that was adopted, of others without statistics, and of a hostile one."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import MANIFEST, RUN, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.published.statistics.published import STATISTICS, Host, Hosts, Total
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.reports.cards.about import TO_FILL, About, read_about
from refinery.pipelines.reports.cards.cards import CARDS
from refinery.pipelines.reports.cards.eu_summary import _reach, size_band
from refinery.pipelines.reports.cards.facts import read_card_facts
from refinery.pipelines.run.fingerprint import phase_fingerprints
from tests.corpus_factory import build_corpus, edit_manifest
from tests.pipelines.inputs import ROOT
from tests.pipelines.reports.cards.hostile import NASTY, hostile_corpus
from tests.pipelines.reports.cards.test_markdown import ACTIVE, tokens
from tests.plain_manifest import manifest_of

HEADINGS = 18  # of the data card of the small corpus, at least


def card(corpus: Path, name: str, about: About | None = None) -> str:
    return CARDS[name].write(read_card_facts(open_store(str(corpus)), about or About())).decode()


def front_and_body(source: str) -> tuple[dict[str, Any], str]:
    """As huggingface_hub tells them apart."""
    found = re.match(r"^(\s*---[\r\n]+)([\S\s]*?)([\r\n]+---(\r\n|\n|$))", source)
    assert found
    return yaml.safe_load(found[2]), source[found.end() :]


def recipe_of(source: str) -> str:
    """The one block of YAML that has sources."""
    (found,) = [t.content for t in tokens(source) if t.type == "fence" and t.info == "yaml" and "sources:" in t.content]
    return str(found)


def test_the_data_card_says_what_the_manifest_says(corpus: Path) -> None:
    manifest = json.loads((corpus / MANIFEST).read_bytes())
    source = card(corpus, "markdown")
    front, body = front_and_body(source)
    assert front["pretty_name"] == "demo" and front["size_categories"] == ["n<1K"]
    assert "license" not in front and front["language"][0] == "en"
    assert len([t for t in tokens(body) if t.type == "heading_open"]) >= HEADINGS
    for totals in manifest["totals"].values():
        assert f"{totals:,}" in body
    for row in manifest["funnel"]:
        for reason, count in row["dropped"].items():
            assert f"{reason} {count['documents']:,}" in body, reason
    for entry in json.loads((corpus / RUN).read_bytes())["inputs"]:
        assert entry["path"] in body and entry["digest"] in body
    assert "No licence of the corpus as a whole is known" in body
    assert "`pii`, version" in body and "`secrets`, version" in body


def test_the_recipe_in_the_card_makes_the_same_corpus(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(recipe_of(card(corpus, "markdown")))
    run = unseal((corpus / RUN).read_bytes(), RUN)
    recipe = load_recipe(str(tmp_path / "recipe.yaml"))
    assert phase_fingerprints(recipe, run["inputs"]) == run["phases"]


@pytest.mark.parametrize("name", list(CARDS))
def test_the_same_bytes_each_time(corpus: Path, name: str) -> None:
    assert card(corpus, name) == card(corpus, name)


def described(corpus: Path, place: Path) -> None:
    """A copy of what describes a corpus, without its shards."""
    shutil.copytree(corpus / "manifests", place / "manifests")
    for name in (MANIFEST, RUN, STATISTICS):
        (place / name).write_bytes((corpus / name).read_bytes())


def test_no_shard_is_read(corpus: Path, tmp_path: Path) -> None:
    """Three files, and listings, are all that a card needs."""
    alone = tmp_path / "alone"
    described(corpus, alone)
    for name in CARDS:
        assert card(alone, name) == card(corpus, name)


def test_the_bill_of_materials(corpus: Path) -> None:
    bill = json.loads(card(corpus, "sbom"))
    parts = {part["bom-ref"]: part for part in bill["components"]}
    run = json.loads((corpus / RUN).read_bytes())
    for entries in run["stages"].values():
        for entry in entries:
            for library, version in entry["libraries"].items():
                assert parts[f"pypi:{library}"]["purl"] == f"pkg:pypi/{library}@{version}"
            for path, digest in entry.get("files", ()):
                assert parts[f"recipe:{path}"]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert parts["environment:python"]["version"] == run["environment"]["python"]
    assert "timestamp" not in bill["metadata"]
    (needs,) = [each["dependsOn"] for each in bill["dependencies"] if each["ref"] == "corpus"]
    assert sorted(needs) == sorted(parts)


def test_croissant_lists_every_file(corpus: Path) -> None:
    described = json.loads(card(corpus, "croissant"))
    manifest = manifest_of(corpus)
    listed = {each["@id"]: each.get("sha256") for each in described["distribution"]}
    files = [file for shard in manifest["shards"] for file in shard["files"].values()] + manifest["files"]
    assert {file["path"]: file["sha256"] for file in files}.items() <= listed.items()
    assert MANIFEST in listed


def test_the_european_summary(corpus: Path) -> None:
    source = card(corpus, "eu-summary")
    assert "less than 1 billion tokens" in source and "All 8 hosts are listed" in source
    assert source.count(TO_FILL) > 10
    assert "text of web pages (source crawl), other text (source notes)" in source
    about = About(creator="A & B <x>", models="m-1", opt_outs="robots.txt of 2026-01-01\n# was asked", crawlers="none")
    filled = card(corpus, "eu-summary", about)
    assert filled.count(TO_FILL) == source.count(TO_FILL) - 4
    assert r"A & B \<x\>" in filled and "> \\# was asked" in filled


@pytest.mark.parametrize(
    ("tokens", "band"),
    [
        (0, "less than 1 billion tokens"),
        (10**9 - 1, "less than 1 billion tokens"),
        (10**9, "1 billion to 10 trillion tokens"),
        (10**13, "1 billion to 10 trillion tokens"),
        (10**13 + 1, "more than 10 trillion tokens"),
    ],
)
def test_ranges_of_size(tokens: int, band: str) -> None:
    assert size_band(tokens) == band


def hosts(distinct: int, listed: int, exact: bool = True) -> Hosts:
    top = tuple(Host(host=f"h{n}", documents=2, bytes=10) for n in range(listed))
    return Hosts(
        distinct=distinct,
        distinct_low=distinct - (not exact),
        distinct_high=distinct + (not exact),
        exact=exact,
        documents_error=0,
        bytes_error=0 if exact else 5,
        confidence=1.0,
        sampled=0 if exact else 4096,
        top=top,
        without_host=Total(documents=0, bytes=0, tokens=None),
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (hosts(8, 8), "top 10 % by size of content, 1 names; of small and medium-sized providers for 5 % or 1,000"),
        (hosts(8, 8), "All 8 hosts are listed"),
        (hosts(1_000, 100), "Listed are the 100 hosts with most documents, by size (50.0 % of the bytes)"),
        (hosts(1_001, 100), "1 names are missing"),
        (hosts(50_000, 100, exact=False), "4,900 names are missing"),
        (hosts(50_000, 100, exact=False), "49,999 to 50,001 (estimated)"),
        (hosts(50_000, 100, exact=False), "whichever is less, 1,000 names"),
    ],
)
def test_how_far_the_list_of_hosts_reaches(found: Hosts, said: str) -> None:
    assert said in _reach(found, 2_000)


def test_hostile_values_do_nothing(corpus: Path, tmp_path: Path) -> None:
    prefix = hostile_corpus(corpus, tmp_path / "hostile")
    honest = len([t for t in tokens(front_and_body(card(corpus, "markdown"))[1]) if t.type == "heading_open"])
    front, body = front_and_body(card(prefix, "markdown"))
    assert set(front) >= {"pretty_name", "task_categories"} and "alert(1)" in front["pretty_name"]
    for source, headings in ((body, honest + 1), (card(prefix, "eu-summary"), None)):  # and that of its lineage
        found = [t.type for t in tokens(source)]
        assert not set(found) & (ACTIVE - {"heading_open", "em_open", "strong_open"})
        assert headings is None or found.count("heading_open") == headings
        assert "\u202e" not in source
    for name in ("croissant", "sbom"):
        assert "\u202e" not in card(prefix, name) and json.loads(card(prefix, name))
    assert "previous" in body and "removed" in body  # sections that are not known here


def test_a_corpus_of_another_tool_or_an_older_version(tmp_path: Path) -> None:
    """Without statistics; adopted, without anything but tokens."""
    prefix = build_corpus(tmp_path / "tiny")
    assert "there is no statistics.json" in card(prefix, "markdown")

    def adopt(payload: dict[str, Any]) -> None:
        payload.update(lane="adopted", stages=[], columns=[], funnel=[], recipe={"name": "tiny", "adopted": {}})
        payload["totals"]["bytes"] = 0
        payload["files"] = [file for file in payload["files"] if file["path"].startswith("tokenizer/")]
        for shard in payload["shards"]:
            del shard["files"]["provenance"]

    edit_manifest(prefix, adopt)
    source = card(prefix, "markdown")
    assert "adopted from files of another tool" in source and "provenance" not in front_and_body(source)[0].get(
        "configs", []
    )
    assert "input files of this corpus are not recorded" in card(prefix, "eu-summary")
    assert json.loads(card(prefix, "croissant"))["recordSet"] == []


@pytest.mark.parametrize("name", [RUN, STATISTICS])
def test_a_file_that_is_not_the_manifests(corpus: Path, tmp_path: Path, name: str) -> None:
    described(corpus, tmp_path)
    (tmp_path / name).write_bytes((corpus / name).read_bytes().replace(b"demo", b"dome").replace(b"crawl", b"brawl"))
    with pytest.raises((FormatError, CorruptShard), match="crc32c"):
        card(tmp_path, "markdown")


def test_the_command(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["card", str(corpus)]) == 0
    assert capsys.readouterr().out == card(corpus, "markdown")
    about = tmp_path / "about.yaml"
    about.write_text("license: odc-by\ndescription: |\n  Pages.\n")
    assert execute(["card", str(corpus), "--output", str(tmp_path / "cards"), "--about", str(about)]) == 0
    assert sorted(path.name for path in (tmp_path / "cards").iterdir()) == sorted(each.file for each in CARDS.values())
    written = (tmp_path / "cards" / "README.md").read_text()
    assert front_and_body(written)[0]["license"] == "odc-by" and written == card(
        corpus, "markdown", read_about(str(about))
    )
    capsys.readouterr()
    assert execute(["card", str(corpus), "--output", str(tmp_path / "cards")]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert execute(["card", str(corpus), "--format", "sbom", "--format", "croissant"]) == 2
    about.write_text("licence: odc-by\n")
    assert execute(["card", str(corpus), "--about", str(about)]) == 2
    assert "about.licence" in capsys.readouterr().err


def test_stages_that_are_not_known_here(corpus: Path, tmp_path: Path) -> None:
    described(corpus, tmp_path)
    edit_manifest(tmp_path, lambda m: m["stages"].append({"name": "mine", "phase": "shards", "version": 1}))
    source = card(tmp_path, "markdown")
    assert "stages of the recipe's own do: mine" in source and "No stage of this run that is known here takes" in source
    assert "that is known here" not in card(corpus, "markdown")


def test_what_the_page_says_about_a_corpus(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cards.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "about.yaml").write_text(block)
    about = read_about(str(tmp_path / "about.yaml"))
    assert about.license == "odc-by" and about.description.startswith("Pages")


def test_a_sealed_file_of_another_shape(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    described(corpus, tmp_path)
    run = unseal((tmp_path / RUN).read_bytes(), RUN)
    run["inputs"] = [{"path": NASTY}]
    (tmp_path / RUN).write_bytes(seal(run))
    edit_manifest(tmp_path)
    assert execute(["card", str(tmp_path)]) == 2
    assert "not as a run writes them" in capsys.readouterr().err
