"""Which documents a view has how often: counted from its files, and due by its recipe in plain Python."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.loader.order.order import round_keys
from refinery.pipelines.corpus.mix.make_view import make_view
from refinery.pipelines.corpus.mix.recipe import load_mix
from refinery.pipelines.corpus.mix.verify_view import verify_view
from refinery.pipelines.progress.work import Work
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.mix_factory import documents_of, mix_corpus, write_recipe
from tests.plain_manifest import manifest_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, examples, sampled
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

MASK = 2**64 - 1
RULES = {"": lambda row: True, "quality >= 0.5": lambda row: row["quality"] is not None and row["quality"] >= 0.5,
         "language == 'en' and copies > 1": lambda row: row["language"] == "en" and row["copies"] > 1}  # fmt: skip


def fill(folder: Path) -> None:
    mix_corpus(folder / "a", 3, {("train", "web"): [90, 70], ("train", "code"): [40], ("validation", "web"): [12]})
    mix_corpus(folder / "b", 4, {("train", "web"): [50]})


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "mixed-corpora", fill)


def finalize(x: int) -> int:
    """SplitMix64's finalizer (Steele, Lea and Flood 2014), Stafford's variant 13."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def rows_of(corpora: Path, domain: dict[str, Any], seed: int = 1) -> dict[str, dict[str, Any]]:
    """Training documents of a domain's parts that meet its rule, with their hashes, by corpus, .bin and row."""
    keys = [int(key) for key in round_keys("view", seed, domain["name"])]
    found = {}
    for part in domain["parts"]:
        name, _, inner = part.partition("/")
        for shard in manifest_of(corpora / name)["shards"]:
            if shard["split"] == "train" and inner in ("", shard["domain"]):
                for i, row in enumerate(
                    pq.read_table(corpora / name / shard["files"]["provenance"]["path"]).to_pylist()
                ):
                    if RULES[domain.get("where", "")](row):
                        low, high = (int.from_bytes(row["id"][k : k + 8], "little") for k in (0, 8))
                        mixed = finalize((finalize((low + keys[0]) & MASK) ^ high) + keys[1] & MASK)
                        found[f"{name}/{shard['files']['bin']['path']}/{i}"] = row | {"hash": mixed}
    return found


def due(corpora: Path, domain: dict[str, Any], seed: int = 1) -> Counter[str]:
    """How often each document of a domain is due."""
    rows = rows_of(corpora, domain, seed)
    if cap := domain.get("per_host"):
        kept = {}
        for host in {row["url"].split("/")[2] for row in rows.values()}:
            total = 0
            for name, row in sorted(rows.items(), key=lambda item: item[1]["hash"]):
                if row["url"].split("/")[2] == host:
                    total += 1 if "documents" in cap else row["token_count"]
                    if total > next(iter(cap.values())):
                        break
                    kept[name] = row
        rows = kept

    quantile = quantile_of(rows, domain["upsample"]) if "quantiles" in domain.get("upsample", {}) else {}

    def asked(row: dict[str, Any]) -> float:
        upsample, times = domain.get("upsample"), domain.get("times", 1.0)
        if not upsample:
            return float(times)
        value = row[upsample["column"]]
        if value is None:
            return float(times * upsample.get("missing", 1.0))
        if "quantiles" in upsample:
            n, k = upsample["quantiles"], quantile[row["id"]]
            return float(times) * sum(CURVES[upsample["curve"]]((k + (i + 0.5) / 64) / n) for i in range(64)) / 64
        fits = (b for b in upsample["bins"] if "below" not in b or value < float(np.float32(b["below"])))
        return float(times * next(fits)["times"])  # scores are float32, and bins' ends are compared as rules do

    def scaled(factor: int) -> Counter[str]:
        most = round(domain.get("most_times", 4.0) * 65536) if "tokens" in domain else 10**9
        each = {name: min(round(asked(row) * 65536) * factor >> 20, most) for name, row in rows.items()}
        return Counter({name: (each[name] + (row["hash"] & 65535)) >> 16 for name, row in rows.items()})

    if "tokens" not in domain:
        return +scaled(1 << 20)
    low, high = 0, 1 << 40  # the largest factor that does not go over the target
    while low < high:
        middle = (low + high + 1) // 2
        total = sum(times * rows[name]["token_count"] for name, times in scaled(middle).items())
        low, high = (middle, high) if total <= domain["tokens"] else (low, middle - 1)
    return +scaled(low)


def quantile_of(rows: dict[str, dict[str, Any]], upsample: dict[str, Any]) -> dict[bytes, int]:
    """The bin of each document with a value, by its id: that of the middle of all with its value."""
    weights: Counter[float] = Counter()
    for row in rows.values():
        if row[upsample["column"]] is not None:
            weights[row[upsample["column"]]] += 1 if upsample.get("by") == "documents" else row["token_count"]
    found, below = {}, 0
    for value in sorted(weights):
        found[value] = upsample["quantiles"] * (2 * below + weights[value]) // (2 * weights.total())
        below += weights[value]
    return {row["id"]: found[v] for row in rows.values() if (v := row[upsample["column"]]) is not None}


def mixed(corpora: Path, folder: Path, *domains: dict[str, Any], **more: Any) -> Path:
    recipe = write_recipe(folder / "recipe.yaml", {"a": corpora / "a", "b": corpora / "b"}, domains, **more)
    view = folder / "view"
    make_view(load_mix(str(recipe)), str(view), Work())
    return view


BINS = {
    "column": "quality",
    "bins": [{"below": 0.3, "times": 0}, {"below": 0.7, "times": 1.25}, {"times": 3}],
    "missing": 0.5,
}
COPIES = {"column": "copies", "bins": [{"below": 2, "times": 1}, {"times": 2.7}]}
CURVES: dict[str, Callable[[float], float]] = {
    "3 * q": lambda q: 3 * q,
    "power(max(q - 0.4, 0), 1.5) * exp(2 * q)": lambda q: max(q - 0.4, 0) ** 1.5 * math.exp(2 * q),
    "max(0, min(7, (q - 0.2) * 4)) / (1 + q)": lambda q: max(0, min(7, (q - 0.2) * 4)) / (1 + q),
}
VIGINTILES = {"column": "quality", "quantiles": 20, "curve": "power(max(q - 0.4, 0), 1.5) * exp(2 * q)"}
THIRDS = {"column": "copies", "quantiles": 3, "by": "documents", "curve": "3 * q", "missing": 0.5}
TABLE: list[dict[str, Any]] = [
    {"parts": ["a", "b/web"], "where": "quality >= 0.5"},
    {"parts": ["a/web"], "per_host": {"documents": 7}, "times": 1.5},
    {"parts": ["a", "b"], "per_host": {"tokens": 300}, "where": "language == 'en' and copies > 1"},
    {"parts": ["b"], "upsample": BINS},
    {"parts": ["a/web", "b"], "upsample": COPIES, "times": 0.6},
    {"parts": ["a"], "tokens": 1500},
    {"parts": ["a"], "tokens": 12_345, "upsample": BINS, "most_times": 7.5, "per_host": {"documents": 40}},
    {"parts": ["a/code"], "times": 3},
    {"parts": ["a", "b"], "upsample": VIGINTILES, "tokens": 9000, "most_times": 7},
    {"parts": ["a/web", "b"], "upsample": THIRDS, "per_host": {"tokens": 900}},
]  # fmt: skip


@pytest.mark.parametrize("number", sampled("what is due to domains", range(len(TABLE)), 4))
def test_what_is_due_is_there(corpora: Path, tmp_path: Path, number: int) -> None:
    domain = {"name": "d", **TABLE[number]}
    view = mixed(corpora, tmp_path, domain)
    assert compare(corpora, view, domain)
    report = verify_view(str(view))
    assert report.failures == []


def compare(corpora: Path, view: Path, domain: dict[str, Any], seed: int = 1) -> int:
    whole = not (view / "selection.bin").exists()
    expected = due(corpora, domain, seed)
    row = manifest_of(view)["domains"][0]["splits"]["train"]
    tokens = {name: each["token_count"] for name, each in rows_of(corpora, domain, seed).items()}
    by_times = Counter(expected.values())
    assert [(each["times"], each["documents"]) for each in row["times"]] == sorted(by_times.items())
    assert row["tokens"] == sum(times * tokens[name] for name, times in expected.items())
    if not whole:
        assert Counter(name for d, name, _ in documents_of(view, "train") if d == domain["name"]) == expected
    if "tokens" in domain:
        assert row["tokens"] <= domain["tokens"]
    if "upsample" in domain:
        check_bins(view, expected, rows_of(corpora, domain, seed), domain["upsample"])
    return row["tokens"]  # type: ignore[no-any-return]


def check_bins(view: Path, expected: Counter[str], rows: dict[str, dict[str, Any]], upsample: dict[str, Any]) -> None:
    """Nothing is lost between the plan and what is delivered: documents of each bin by their values, counts x times."""
    payload = manifest_of(view)
    planned, split = payload["plan"]["d"], payload["domains"][0]["splits"]["train"]
    bins = planned["bins"]
    assert len(bins) == len(planned["times"]) == len(upsample.get("bins", range(upsample.get("quantiles", 0)))) + 1
    for key in ("documents", "tokens"):
        assert sum(each[f"delivered_{key}"] for each in bins) == split[key]
    for each, times in zip(bins, planned["times"], strict=True):
        assert math.floor(times) * each["documents"] <= each["delivered_documents"]
        assert each["delivered_documents"] <= math.ceil(times) * each["documents"]
        assert math.floor(times) * each["tokens"] <= each["delivered_tokens"] <= math.ceil(times) * each["tokens"]
        if each["from"] is not None:
            its = [n for n, r in rows.items() if (v := r[upsample["column"]]) is not None and in_bin(v, each)]
            assert sum(expected[name] for name in its) == each["delivered_documents"]
            assert sum(expected[name] * rows[name]["token_count"] for name in its) == each["delivered_tokens"]


def in_bin(value: float, found: dict[str, float]) -> bool:
    return found["from"] <= value <= found["to"]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_plan(corpora: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    times = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.75, 2.0, 3.1])
    domain: dict[str, Any] = {
        "name": "d",
        "parts": data.draw(st.sampled_from([["a"], ["b"], ["a/web", "b"], ["a/code"]])),
        "where": data.draw(st.sampled_from(sorted(RULES))),
        "times": data.draw(times.filter(bool)),
    }
    if data.draw(st.booleans()):
        kind = data.draw(st.sampled_from(["documents", "tokens"]))
        domain["per_host"] = {kind: data.draw(st.integers(1, 60) if kind == "documents" else st.integers(40, 900))}
    if data.draw(st.booleans()):
        ends = sorted(data.draw(st.sets(st.sampled_from([0.2, 0.4, 0.5, 0.9]), max_size=3)))
        bins = [{"below": end, "times": data.draw(times)} for end in ends] + [{"times": data.draw(times)}]
        domain["upsample"] = {"column": "quality", "bins": bins, "missing": data.draw(times)}
        if data.draw(st.booleans()):
            curve, by = data.draw(st.sampled_from(sorted(CURVES))), data.draw(st.sampled_from(["tokens", "documents"]))
            column = data.draw(st.sampled_from(["quality", "copies"]))
            quantiles = {"quantiles": data.draw(st.integers(2, 40)), "by": by, "curve": curve}
            domain["upsample"] = {"column": column, **quantiles, "missing": data.draw(times)}
    if data.draw(st.booleans()):
        domain["tokens"] = data.draw(st.integers(1, 4000))
    seed = data.draw(st.integers(0, 5))
    try:
        view = mixed(corpora, tmp_path_factory.mktemp("plan"), domain, seed=seed)
    except RecipeError as error:
        assert "can be reached" in str(error) or "no training document" in str(error)
        return
    compare(corpora, view, domain, seed)


def test_the_same_bytes_and_not_another_view_over_it(corpora: Path, tmp_path: Path) -> None:
    domain = {"name": "d", **TABLE[4]}
    view = mixed(corpora, tmp_path, domain)
    before = {path.name: path.read_bytes() for path in view.iterdir()}
    (view / "manifest.json").unlink()  # killed between the two files: the same command goes on
    again = mixed(corpora, tmp_path, domain)
    assert {path.name: path.read_bytes() for path in again.iterdir()} == before
    with pytest.raises(Exception, match="another view is there"):
        mixed(corpora, tmp_path, domain, seed=2)


def test_the_same_bytes_with_several_processes(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.pipelines.corpus.mix.scans.WORTH", 0)
    one = mixed(corpora, tmp_path, {"name": "d", **TABLE[6]})
    make_view(load_mix(str(tmp_path / "recipe.yaml")), str(tmp_path / "again"), Work(), workers=2)
    for name in ("manifest.json", "selection.bin"):
        assert (tmp_path / "again" / name).read_bytes() == (one / name).read_bytes()


def test_targets_that_cannot_be_reached(corpora: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"at most [\d,]+ can be reached.*raise most_times"):
        mixed(corpora, tmp_path, {"name": "d", "parts": ["b"], "tokens": 10**9})
