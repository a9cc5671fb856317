"""Honest corpora pass, forged ones are found, and what cannot be decided is said."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.audit.audit import audit
from refinery.pipelines.corpus.audit.recorded import Asked
from refinery.pipelines.corpus.audit.sample import Sample
from refinery.pipelines.corpus.audit.verdict import Verdict
from tests.corpus_factory import edit_manifest
from tests.pipelines.code_runs import make_code_inputs
from tests.pipelines.corpus.audit.forging import FORGERIES, copy_of, seal_again
from tests.pipelines.inputs import ROOT, run
from tests.pipelines.small_runs import OFF, rows, text_of
from tests.sampling import one_commit_in_four, sampled


def audited(prefix: Path, rate: float = 1.0, **asked: Any) -> Verdict:
    seed, files = asked.pop("seed", 0), asked.pop("files", None)
    return audit(Asked(str(prefix), **asked), Sample(rate, seed), 0, files, lambda line: None)


def refined(folder: Path, recipe: dict[str, Any]) -> Path:
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", folder / "recipe.yaml", "--output", folder / "corpus", "--workers", 0)
    return folder / "corpus"


def test_an_honest_corpus_of_the_web(corpus: Path) -> None:
    verdict = audited(corpus)
    assert verdict.is_sound and not verdict.outcome.undecided and not verdict.differs
    manifest = json.loads((corpus / "manifest.json").read_bytes())
    assert verdict.outcome.agreed["in the corpus"] == manifest["totals"]["documents"]
    read = sum(row["in"]["documents"] for row in manifest["funnel"] if row["stage"] == "read")
    assert verdict.units == read
    assert verdict.statement().startswith(f"all {read:,} records")


@one_commit_in_four
def test_an_honest_corpus_of_source_code(tmp_path: Path) -> None:
    """Copies of constructs are cut out of files there: such texts are compared as parts."""
    inputs = make_code_inputs(tmp_path / "in")
    run("refine", inputs / "recipe.yaml", "--output", tmp_path / "corpus", "--workers", 0)
    verdict = audited(tmp_path / "corpus")
    assert verdict.is_sound, list(verdict.lines())
    assert verdict.outcome.agreed["in the corpus"] and verdict.outcome.agreed["removed as a copy"]
    assert verdict.outcome.agreed["in the corpus, a part of the text that its record gives"]
    forged = copy_of(tmp_path / "corpus", tmp_path / "forged")
    FORGERIES["a document is dropped silently"][0](forged)
    seal_again(forged)
    assert [finding.what for finding in audited(forged).outcome.findings] == ["missing"]  # all rejects are listed there


@one_commit_in_four
def test_an_honest_corpus_with_targets_caps_samples_and_lines(small: Path, tmp_path: Path) -> None:
    """Exact verification, copies of addresses, a source that is cut at its target, one of which little is read, and
    columns that count."""
    for name, numbers in (("a", range(25)), ("b", range(10, 40)), ("c", range(30))):
        (tmp_path / f"{name}.jsonl").write_text(rows(name if name != "c" else "a", numbers))
    near = {"threshold": 0.8, "verify": "exact"}
    base = {"name": "t", "tokenizer": {"path": str(small / "tokenizer.json")}, "rejects": {"rate": 0.5}, **OFF}
    base |= {"pii": {}, "columns": ["pii", "pii_types", "lines_cut"]}
    sources = [
        {"name": "a", "paths": [str(tmp_path / "a.jsonl")], "target": 150},
        {"name": "b", "paths": [str(tmp_path / "b.jsonl")], "sample": 0.6, "priority": 1},
        {"name": "c", "paths": [str(tmp_path / "c.jsonl")], "cap": 12, "priority": 2},
    ]
    cuts = {"url_dup": {}, "near_dup": near, "line_dup": {}}
    prefix = refined(tmp_path, {**base, **cuts, "sources": sources, "failures": {"allow_empty": True}})
    verdict = audited(prefix)
    assert verdict.is_sound, list(verdict.lines())
    assert verdict.outcome.agreed["cut at the target of its source"], list(verdict.lines())
    assert verdict.outcome.agreed["removed as a copy"] and verdict.outcome.agreed["in the corpus"]


@one_commit_in_four
@pytest.mark.parametrize("exact", [True, False])
def test_copies_that_have_addresses_in_common_too(small: Path, tmp_path: Path, exact: bool) -> None:
    """A few texts at a few addresses: what an address was decided for may be removed as a copy of another one's, and
    several documents of one text may be kept."""
    draw = random.Random(1)
    lines = [
        {
            "text": text_of(draw.randrange(6)),
            "url": f"https://a.example/{draw.randrange(8)}",
            "date": f"20{day:02}-01-01",
        }
        for day in draw.sample(range(10, 70), 60)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = {"name": "t", "tokenizer": {"path": str(small / "tokenizer.json")}, **OFF, "url_dup": {}}
    recipe |= {"exact_dup": exact, "sources": [{"name": "a", "paths": [str(tmp_path / "a.jsonl")]}]}
    verdict = audited(refined(tmp_path, recipe))
    assert verdict.is_sound, "\n".join(verdict.lines())
    assert verdict.outcome.agreed["removed as a copy"] > 40


@pytest.mark.parametrize("name", sampled("forgeries that audits find", FORGERIES, 3))
def test_every_forgery_is_found(corpus: Path, tmp_path: Path, name: str) -> None:
    forge, what = FORGERIES[name]
    prefix = copy_of(corpus, tmp_path / "forged")
    forge(prefix)
    seal_again(prefix)
    verdict = audited(prefix)
    assert not verdict.is_sound
    assert what in {finding.what for finding in verdict.outcome.findings}, list(verdict.lines())
    assert verdict.outcome.differing <= 2


def test_a_number_of_the_funnel(corpus: Path, tmp_path: Path) -> None:
    """All records are counted, whatever the sample."""
    prefix = copy_of(corpus, tmp_path / "forged")

    def edit(payload: dict[str, Any]) -> None:
        payload["funnel"][0]["in"]["documents"] -= 1

    edit_manifest(prefix, edit)
    verdict = audited(prefix, 0.1)
    assert not verdict.is_sound and not verdict.outcome.differing
    assert [finding.what for finding in verdict.faults] == ["another number of records"]


def test_a_count_that_is_moved_to_another_reason(corpus: Path, tmp_path: Path) -> None:
    """Sums stay, and rejects/ may have a sample alone: all records say why each is dropped."""
    prefix = copy_of(corpus, tmp_path / "forged")

    def edit(payload: dict[str, Any]) -> None:
        row = next(row for row in payload["funnel"] if row["stage"] == "heuristics" and len(row["dropped"]) > 1)
        one, other = sorted(row["dropped"])[:2]
        for unit, count in (("documents", 1), ("bytes", 100)):
            row["dropped"][one][unit] -= count
            row["dropped"][other][unit] += count

    edit_manifest(prefix, edit)
    verdict = audited(prefix)
    assert not verdict.is_sound and not verdict.outcome.differing
    assert [finding.what for finding in verdict.faults] == ["another number of records"] * 2


@one_commit_in_four
def test_samples(corpus: Path) -> None:
    """A part of the records, the same each time, of another seed another one; some input files alone."""
    one, again, other = audited(corpus, 0.2), audited(corpus, 0.2), audited(corpus, 0.2, seed=1)
    assert one.is_sound and one.sealed() == again.sealed() != other.sealed()
    whole = audited(corpus).units
    assert 0.1 * whole < one.units < 0.3 * whole
    assert "95% confidence fewer than" in one.statement()
    part = audited(corpus, 1.0, files=2)
    assert part.is_sound and part.units < whole and "of the 2 input files" in part.statement()
    none = audited(corpus, 1e-9)
    assert not none.is_sound and "nothing was compared" in none.statement()


@one_commit_in_four
def test_in_processes_of_their_own(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = audited(corpus, 0.3)
    monkeypatch.setattr("refinery.pipelines.corpus.audit.audit.WORTH", 0)
    assert audit(Asked(str(corpus)), Sample(0.3), 1, None, lambda line: None).sealed() == alone.sealed()


@one_commit_in_four
def test_inputs_in_another_place(corpus: Path, tmp_path: Path) -> None:
    """By folder, by OLD=NEW; gone, of another size, of other bytes."""
    recorded = [entry["path"] for entry in json.loads((corpus / "_run.json").read_bytes())["inputs"]]
    folder = Path(recorded[0]).parent
    shutil.copytree(folder, tmp_path / "elsewhere")
    expected = audited(corpus, 0.3).sealed()
    for given in (str(tmp_path / "elsewhere"), f"{folder}={tmp_path / 'elsewhere'}"):
        assert audited(corpus, 0.3, inputs=(given,)).sealed() == expected
    file = tmp_path / "elsewhere" / Path(recorded[0]).name
    data = file.read_bytes()
    for change, said in (
        (data[:-1] + bytes([data[-1] ^ 1]), "as long as the file that the run read, but with different bytes"),
        (data[:-1], "another file"),
        (None, "is not there; --inputs FOLDER"),
    ):
        file.unlink()
        if change is not None:
            file.write_bytes(change)
        with pytest.raises(ValueError, match=said):
            audited(corpus, 0.3, inputs=(str(tmp_path / "elsewhere"),))


def test_only_places_of_files_may_be_set(corpus: Path, inputs: Path, tmp_path: Path) -> None:
    model = tmp_path / "moved.bin"
    shutil.copy(inputs / "quality.bin", model)
    assert audited(corpus, 0.1, settings=(f"quality.model={model}",)).is_sound
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="is not the file of the run"):
        audited(corpus, 0.1, settings=(f"quality.model={model}",))
    model.unlink()
    with pytest.raises(ValueError, match=r"moved.bin: cannot be read: .*; say with --set KEY=FILE where it is"):
        audited(corpus, 0.1, settings=(f"quality.model={model}",))
    for setting in ("heuristics.gopher.min_words=1", "url.blocked_domains=[a.example, b.example]"):
        with pytest.raises(ValueError, match="only the places of files may be set"):
            audited(corpus, 0.1, settings=(setting,))


def test_published_files_that_no_run_writes(corpus: Path, tmp_path: Path) -> None:
    """One line that names the file: a column of another type, nulls, _run.json of another shape."""
    prefix = copy_of(corpus, tmp_path / "forged")
    path = next((prefix / "rejects").iterdir())
    table = pq.read_table(path)
    for column in (pa.nulls(len(table), pa.string()), pa.array(range(len(table)), pa.int64())):
        pq.write_table(table.set_column(table.schema.get_field_index("origin"), "origin", column), path)
        edit_manifest(prefix)
        with pytest.raises(FormatError, match=f"{path.name}.*origin"):
            audited(prefix)
    pq.write_table(table, path)
    record = unseal((prefix / RUN).read_bytes(), RUN)
    (prefix / RUN).write_bytes(seal({**record, "stages": None}))
    edit_manifest(prefix)
    with pytest.raises(FormatError, match="not as a run writes it"):
        audited(prefix)


def test_the_command(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", str(corpus), "--sample", "0.2", "--workers", "0"]
    assert execute([*words, "--output", str(tmp_path / "verdict.json")]) == 0
    said = capsys.readouterr().out
    verdict = unseal((tmp_path / "verdict.json").read_bytes(), "verdict")
    assert verdict["sound"] and verdict["statement"]["text"] in said and verdict["units"]["differ"] == 0
    assert execute([*words, "--json"]) == 0
    assert unseal(capsys.readouterr().out.encode(), "verdict") == verdict
    assert execute(["audit", str(corpus), "--sample", "2"]) == 2
    assert execute([*words, "--output", str(tmp_path / "verdict.json")]) == 2
    forge, _ = FORGERIES["a token"]
    prefix = copy_of(corpus, tmp_path / "forged")
    forge(prefix)
    seal_again(prefix)
    capsys.readouterr()
    assert execute(["audit", str(prefix), "--sample", "1", "--workers", "0"]) == 1
    assert "! other tokens:" in capsys.readouterr().out


@one_commit_in_four
def test_processes_leave_no_warnings_behind(corpus: Path, tmp_path: Path) -> None:
    """The command ends by itself, at once: what its processes shared must be given back by then."""
    script = tmp_path / "audit.py"
    script.write_text(
        "import sys\n"
        "if __name__ == '__main__':\n"
        "    from refinery.pipelines.corpus.audit import audit\n"
        "    from refinery.pipelines.cli.command_line import main\n"
        "    audit.WORTH = 0\n"
        f"    sys.argv = ['refinery', 'audit', {str(corpus)!r}, '--sample', '0.1', '--workers', '2']\n"
        "    main()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=ROOT, timeout=200)
    assert "0 differ" in done.stdout and "leaked" not in done.stderr, done.stderr
