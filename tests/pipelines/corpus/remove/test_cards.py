"""Cards and reports after a takedown: whole, and true of what is left."""

import json
from pathlib import Path

import pytest

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.reports.cards.about import About
from refinery.pipelines.reports.cards.cards import CARDS
from refinery.pipelines.reports.cards.facts import read_card_facts
from tests.pipelines.corpus.remove.corpora import remove, rows
from tests.pipelines.corpus.remove.families import Corpus, Record, sentence
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def text(name: str) -> str:
    return " ".join(sentence(name, number) for number in range(9))


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A corpus with the stages for rights on, and a takedown of a source."""

    def fill(folder: Path) -> None:
        records = [
            Record(source, f"https://{source}{number}.example/", text(f"{source}{number}"))
            for source in ("web", "books")
            for number in range(4)
        ]
        (folder / "hosts.txt").write_text("refuses.example\n")
        rights = {"opt_out": {"host_lists": [str(folder / "hosts.txt")], "as_of": "2026-01-01"}, "page_license": {}}
        Corpus(folder / "in", records, **rights).refine(folder / "0")
        remove(folder / "0", folder / "1", "--source", "web")

    folder = shared(tmp_path_factory, "cards", fill)
    return [folder / "0", folder / "1"]


def card(prefix: Path, name: str) -> str:
    return CARDS[name].write(read_card_facts(open_store(str(prefix)), About())).decode()


@pytest.mark.parametrize("name", ["markdown", "eu-summary"])
def test_licences_and_reservations_were_looked_at(name: str, versions: list[Path]) -> None:
    for prefix in versions:
        said = card(prefix, name)
        assert (
            "No stage of this run" not in said.split("Personal data")[0].split("### 3.2")[0].split("Licences and")[-1]
        )
        assert "`opt-out`, version" in said and "hosts.txt" in said and "`page-license`, version" in said


def test_a_takedown_is_a_step_of_our_own(versions: list[Path]) -> None:
    before, after = (card(prefix, "markdown") for prefix in versions)
    assert "stages of the recipe's own" not in before + after
    assert "it was asked for, after the corpus was made" in after and "takedowns, by Refinery" in after
    assert "there is no statistics.json" not in after
    assert "web0.example" in before and "web0.example" not in after and "books0.example" in after
    assert "web0.example" not in card(versions[1], "eu-summary")


def test_examples_of_dropped_documents_do_not_outlive_a_takedown(versions: list[Path]) -> None:
    """dropped.json may name what went, so the new version has none, and the proof says so."""
    before, after = (PublishedCorpus(str(prefix)) for prefix in versions)
    assert before.lists("dropped.json") and not after.lists("dropped.json")
    assert not (versions[1] / "dropped.json").exists()
    proof = json.loads((versions[1] / "takedowns" / "00001" / "removal.json").read_bytes())
    assert "dropped.json" in proof["left_out"]


def test_hosts_are_counted_again(versions: list[Path]) -> None:
    statistics = PublishedCorpus(str(versions[1])).statistics()
    point = statistics.point("published") if statistics else None
    assert point is not None and point.hosts is not None and point.total is not None
    assert point.total.documents == len(rows(versions[1])) == 4
    assert {host.host for host in point.hosts.top} == {f"books{number}.example" for number in range(4)}
    assert (versions[1] / "report.html").is_file()
