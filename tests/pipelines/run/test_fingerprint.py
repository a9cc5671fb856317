"""A fingerprint changes with what decides the result, and with nothing else."""

import ast
from pathlib import Path

import google_crc32c
import pytest

from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.params import RecipeError
from refinery.pipelines.recipe.recipe import PHASE_SECTIONS, Recipe
from refinery.pipelines.run import fingerprint as module
from refinery.pipelines.run.fingerprint import (
    code_digest,
    describe_inputs,
    input_digest,
    listed_digests,
    module_files,
    phase_fingerprints,
    phase_modules,
)
from refinery.transforms.read.sources import ReadTask
from tests.fake_gcs import fake_gcs


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    (tmp_path / "tokenizer.json").write_text("{}")
    source = {"name": "s", "paths": ["x.jsonl"]}
    return parse_recipe({"name": "n", "sources": [source], "tokenizer": {"path": str(tmp_path / "tokenizer.json")}})


def changed(before: Recipe, after: Recipe) -> list[str]:
    first, second = phase_fingerprints(before, [{"path": "x"}]), phase_fingerprints(after, [{"path": "x"}])
    return [phase for phase in first if first[phase] != second[phase]]


def test_each_phase_depends_on_its_sections_and_on_the_phases_before(recipe: Recipe) -> None:
    assert changed(recipe, recipe) == []
    assert changed(recipe, recipe.replace(language=None)) == ["clean", "dedup", "shards"]
    assert changed(recipe, recipe.replace(near_dup=None)) == ["dedup", "shards"]
    assert changed(recipe, recipe.replace(pii=None)) == ["shards"]
    assert changed(recipe, recipe.replace(failures=recipe.failures.replace(grace=99))) == []
    assert changed(recipe, recipe.replace(run=recipe.run.replace(wave_files=1))) == []


def test_every_section_is_in_exactly_one_phase_or_decides_nothing() -> None:
    sections = [name for names in PHASE_SECTIONS.values() for name in names]
    assert sorted([*sections, "failures", "run"]) == sorted(Recipe.__dataclass_fields__)


def test_content_of_named_files_counts(recipe: Recipe) -> None:
    before = phase_fingerprints(recipe, [])
    Path(recipe.tokenizer.path).write_text('{"other": 1}')
    after = phase_fingerprints(recipe, [])
    assert [phase for phase in before if before[phase] != after[phase]] == ["shards"]
    Path(recipe.tokenizer.path).unlink()
    with pytest.raises(RecipeError, match=r"tokenizer\.json"):
        phase_fingerprints(recipe, [])


def test_inputs_are_told_apart_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "input"
    monkeypatch.setattr(module, "HASHED_BYTES", 64_000)
    for size in (0, 1, 64_000, 64_001, 1_000_000):
        file.write_bytes(bytes(size))
        digest = input_digest(str(file), size)
        file.write_bytes(bytes(size))  # a later time of change is no other content
        assert input_digest(str(file), size) == digest
        for position in {0, size - 1} if size else ():
            data = bytearray(size)
            data[position] = 1
            file.write_bytes(data)
            assert input_digest(str(file), size) != digest


def test_inputs_in_a_bucket_are_told_apart_by_a_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("crawl", "other") as server:
        server.use(monkeypatch)
        for i in range(20):
            server.put("crawl", f"a/{i}.warc.gz", b"page %d" % i)
        server.put("other", "b.warc.gz", b"page 3")
        paths = [*(f"gs://crawl/a/{i}.warc.gz" for i in range(20)), "gs://other/b.warc.gz"]
        server.calls.clear()
        inputs = describe_inputs([ReadTask(path, "warc", "a", i, 6) for i, path in enumerate(paths)])
        assert {entry["path"]: entry["digest"] for entry in inputs} == listed_digests(paths)
        assert len({entry["digest"] for entry in inputs}) == 20  # one of them twice
        crc32c = google_crc32c.value(b"page 3")
        assert {entry["digest"] for entry in inputs if entry["path"] in (paths[3], paths[20])} == {f"{crc32c:08x}"}
        assert {call.kind for call in server.calls} == {"list"}
        assert listed_digests(["gs://other/gone", "elsewhere/file"]) == {}


def test_every_transform_of_the_graphs_is_in_a_phase() -> None:
    tree = ast.parse((module.ROOT / "refinery" / "pipelines" / "lanes" / "web.py").read_bytes())
    used = {
        n.module
        for n in tree.body
        if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("refinery.transforms.")
    }
    assert used == set().union(*(phase_modules(phase) for phase in PHASE_SECTIONS))


def test_code_covers_stages_their_helpers_and_kernels() -> None:
    clean = {path.name for path in module_files(phase_modules("clean"))}
    assert {"read_warc.py", "extract.py", "heuristics.c", "minhash.c", "per_document.py", "storage.py"} <= clean
    assert not {"encode.py", "pii.py", "write_shards.py"} & clean
    shards = {path.name for path in module_files(phase_modules("shards"))}
    assert {"bpe.c", "encode.py", "format.py", "indexed.py"} <= shards
    assert not {"read_warc.py", "extract.py", "minhash.c"} & shards
    assert len({code_digest(phase) for phase in PHASE_SECTIONS}) == 3
