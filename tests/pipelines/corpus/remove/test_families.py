"""After a takedown every document stands where a run without what went would have put it: random families, whole runs
beside each other, and thousands of families by the decisions alone."""

import random
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.takedown import REPLACED, UNREPRESENTED
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.audit.audit import audit
from refinery.pipelines.corpus.audit.recorded import Asked
from refinery.pipelines.corpus.audit.sample import Sample
from refinery.pipelines.corpus.remove.attribute import Attribution
from refinery.pipelines.corpus.remove.families import Absent, Compared, PartFiles, find_families
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.corpus.remove.rows import Key
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import Document, document_id, text_bytes
from refinery.transforms.dedup.deduplicate import list_parts
from refinery.transforms.dedup.records.rank import rank_key
from refinery.transforms.dedup.signatures import compute_signatures, signature_table
from refinery.transforms.dedup.stages import URL_DUPLICATES
from refinery.transforms.write.documents import documents_table
from tests.pipelines.corpus.remove.corpora import remove, removed_rows, rows, write_list
from tests.pipelines.corpus.remove.families import RECIPE, SOURCES, Corpus, Record, random_family, random_items
from tests.pipelines.inputs import corpus_bytes
from tests.sampling import ALL, FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

FACTS = ("id", "source", "origin", "copies", "sources")
RECIPES: list[dict[str, Any]] = [
    {},
    {"url_dup": {}},
    {"near_dup_in_source": {"*": {"threshold": 0.7}}},
    {"near_dup_in_source": {"books": {"threshold": 0.5}}, "url_dup": {"prefer": "longest"}},
    {"near_dup": {"threshold": 0.6, "verify": "signature"}},
    {"near_dup": False, "near_dup_in_source": {"*": {"threshold": 0.6}}},
    {"near_dup": {"threshold": 0.6, "bands": 28, "rows": 4}},
    {"near_dup": {"threshold": 0.6, "bands": 4, "rows": 8}},  # most pairs are found by way of others alone
]


def families(draw: random.Random, count: int, name: str) -> list[Record]:
    """So many, their documents among each other."""
    records = [record for number in range(count) for record in random_family(draw, f"{name}f{number}")]
    draw.shuffle(records)
    return records


def facts(prefix: Path) -> tuple[list[Any], list[Any]]:
    """What is in the shards, with its counts, and all of removals/."""
    return sorted(rows(prefix, FACTS), key=repr), removed_rows(prefix)


def bytes_of(prefix: Path) -> dict[str, str]:
    """Shards that hold something, and removals/."""
    empty = tuple(
        shard.bin.path.removesuffix("bin")
        for shard in read_manifest(open_store(str(prefix))).shards
        if not shard.documents
    )
    files = corpus_bytes(prefix)
    return {
        name: sha
        for name, sha in files.items()
        if name.split("/")[0] in ("train", "validation", "removals") and not name.startswith(empty or ("none",))
    }


def request(draw: random.Random, corpus: Corpus, path: Path) -> tuple[set[int], list[Any]]:
    """Records that are to go, whatever else goes, and the flags that say so."""
    kind = draw.choice(("urls", "urls", "source", "copies", "sources"))
    copies = ["--copies", draw.choice(("keep", "remove"))]
    if kind == "urls":
        share = draw.choice((0.05, 0.2, 0.5))
        drawn = {record.url for record in corpus.records if draw.random() < share}
        urls = sorted(drawn or {corpus.records[0].url})  # a list names something
        named = {at for at, record in enumerate(corpus.records) if record.url in urls}
        return named, ["--urls", write_list(path, urls), *copies]
    source = draw.choice(SOURCES)
    if kind == "source":
        return {at for at, record in enumerate(corpus.records) if record.source == source}, [
            "--source",
            source,
            *copies,
        ]
    rule = "copies > 1" if kind == "copies" else f"source == '{source}' and copies < 3"
    return set(), ["--where", rule]


def went(prefix: Path) -> list[dict[str, Any]]:
    """What the last takedown lists."""
    manifest = read_manifest(open_store(str(prefix)))
    listed: list[dict[str, Any]] = pq.read_table(prefix / manifest.takedowns[-1].removed).to_pylist()
    return listed


def counted(prefix: Path) -> Any:
    """What statistics.json says of the documents in the shards."""
    statistics = PublishedCorpus(str(prefix)).statistics()
    point = statistics.point("published") if statistics else None
    return point and point.model_dump(exclude={"after"})


@pytest.mark.parametrize("seed", sampled("whole runs with families of duplicates", range(50), 1))
def test_as_a_run_without_what_went(seed: int, tmp_path: Path) -> None:
    """Two takedowns, one after the other: each is, byte for byte, a run without all that it and the one before list as
    gone: what was asked for, its copies with --copies remove, and duplicates that a rule names as they come back."""
    draw = random.Random(seed)
    records = families(draw, 16, f"s{seed}")
    items = random_items(draw, records) if seed % 3 else []
    corpus = Corpus(tmp_path / "in", records, items, **RECIPES[seed % len(RECIPES)])
    versions, gone = [corpus.refine(tmp_path / "0")], set[int]()
    for number in (1, 2):
        asked, flags = request(draw, corpus, tmp_path / f"{number}.txt")
        remove(versions[-1], tmp_path / str(number), *flags, "--work", tmp_path / "0" / "work")
        versions.append(tmp_path / str(number))
        listed = [row for row in went(versions[-1]) if row["why"] != REPLACED]
        assert not [row for row in listed if row["why"] == UNREPRESENTED and "--where" not in flags]
        gone |= {corpus.number(row["source"], row["origin"]) for row in listed}
        there = {
            corpus.number(row["source"], row["origin"])
            for row in (*rows(versions[-2], FACTS), *removed_rows(versions[-2]))
        }
        assert asked & there <= gone
        again = corpus.refine(tmp_path / f"again-{number}", gone)
        assert facts(versions[-1]) == facts(again)
        assert bytes_of(versions[-1]) == bytes_of(again)
        totals = [read_manifest(open_store(str(prefix))).totals for prefix in (versions[-1], again)]
        assert totals[0] == totals[1]
        assert counted(versions[-1]) == counted(again)
        assert verify(str(versions[-1]), against=str(versions[-2])).failures == []
        audited = audit(Asked(str(versions[-1])), Sample(1.0), 0, None, lambda line: None)
        assert audited.is_sound, "\n".join(audited.lines())


def write_part(folder: Path, records: Iterable[tuple[int, Record]], recipe: Any) -> PartFiles:
    """A part of phase 1, without phase 1."""
    docs = [
        Document(document_id(doc.text), doc.text, doc.url, doc.source, f"file@{at}", at, {"date": doc.date})
        for at, doc in records
    ]
    facts_of = recipe.source_facts()
    signatures = signature_table(
        [doc.id for doc in docs],
        [rank_key(doc, facts_of[doc.source].priority, recipe.rank) for doc in docs],
        [doc.source for doc in docs],
        [facts_of[doc.source].domain for doc in docs],
        [text_bytes(doc.text) for doc in docs],
        compute_signatures([doc.text for doc in docs], recipe.signature),
        more=URL_DUPLICATES.hashed.made(docs, recipe.signature),
    )
    for name, table in (("documents", documents_table(docs)), ("signatures", signatures)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name / "part-0.parquet", write_page_checksum=True)
    return PartFiles(str(folder), "documents/part-0.parquet", "signatures/part-0.parquet")


def deduplicated(part: PartFiles, recipe: Any, work: Path) -> dict[Key, Any]:
    """Phase 2 on a whole part: key -> (kept_id, reason, scope, similarity) or (copies, sources)."""
    store = part.store
    documents = pq.read_table(f"{part.root}/{part.documents}").to_pylist()
    pipeline = beam.Pipeline(runner=FnApiRunner())
    lists = list_parts(str(work), [(store.url(part.signatures), len(documents))])
    graphs.dedup(pipeline, recipe, lists, 1, str(work), "report.json", {}, "salt")
    pipeline.run().wait_until_finish()
    verdicts = pq.read_table(work / "verdicts").to_pylist()
    return {
        (doc["id"], doc["source"], doc["origin"]): told(verdict["removed"], verdict)
        for doc, verdict in zip(documents, verdicts, strict=True)
    }


def told(removed: bool, row: Any) -> tuple[Any, ...]:
    if removed:
        return row["kept_id"], row["reason"], row["scope"], np.float32(row["similarity"])
    return row["copies"], tuple(sorted(row["sources"]))


@pytest.mark.parametrize("number", sampled("decisions on thousands of families", range(len(RECIPES)), 1))
def test_decisions_on_families_alone(number: int, tmp_path: Path) -> None:
    """A corpus of 600 families (3,000 in test-all), a share of whose records goes, and then more of them: what the
    families decide is what phase 2 decides of all that is left, and documents of no family stay as they were."""
    draw = random.Random(number)
    records = families(draw, 3000 if ALL else 600, f"d{number}")
    sources = [{"name": name, "paths": ["none"], "priority": at} for at, name in enumerate(SOURCES)]
    settings = {**RECIPE, **RECIPES[number], "sources": sources, "tokenizer": {"path": "none"}}
    recipe = parse_recipe(settings)
    part = write_part(tmp_path / "all", enumerate(records), recipe)
    before = deduplicated(part, recipe, tmp_path / "before")
    at = {key: int(key[2].rpartition("@")[2]) for key in before}
    first, second = ({key for key in before if draw.random() < 0.15} for _ in range(2))
    second -= first
    near = [params for params in (recipe.near_dup, *recipe.near_dup_in_source.values()) if params is not None]
    compared = Compared(tuple(near), recipe.signature.permutations, recipe.params_of(URL_DUPLICATES) is not None)
    runner = Runner("local", 0, (), True, False, lambda text: None)
    place = Place(str(tmp_path / "new"), {"of": "a test"}, runner, "test", lambda text: None, before="elsewhere")
    attribution = Attribution(recipe, compared, place, "salt")
    with runner.open():
        place.claim()
        attribution.hold(find_families([part], compared, first, Absent.of(first), ()))
        attribution.decide(())
        check(attribution, before, records, at, first, recipe, tmp_path / "without")
        held = second & set(attribution.records)
        attribution.without(held, Absent.of({*first, *held}))
        check(attribution, before, records, at, first | held, recipe, tmp_path / "without-more")


def check(
    attribution: Attribution,
    before: dict[Key, Any],
    records: list[Record],
    at: dict[Key, int],
    gone: Collection[Key],
    recipe: Any,
    folder: Path,
) -> None:
    left = write_part(folder, [(at[key], records[at[key]]) for key in before if key not in gone], recipe)
    expected = deduplicated(left, recipe, folder)
    decided = {
        key: told(each.removal is not None, each.removal or {"copies": each.copies, "sources": each.sources})
        for key, each in attribution.decided.items()
    }
    changed = {key for key in expected if expected[key] != before[key]}
    assert changed and changed <= decided.keys()
    assert decided == {key: expected[key] for key in decided}
    assert len(decided) < len(expected), "most documents are in no family of what went"
