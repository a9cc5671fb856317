"""Another tokenizer for a finished corpus: what a whole run with it would give, from the kept documents alone."""

import json
import shutil
from pathlib import Path

import pytest

from refinery.loader.format.manifest import seal
from refinery.pipelines.corpus.export.export_format import RUN_KIND
from refinery.pipelines.run.retokenize import recorded_run
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import command, digests, folder_files, make_small_inputs, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def other_tokenizer(folder: Path) -> Path:
    settings = TrainTokenizerParams(vocab_size=320, held_out=0, special_tokens=("<|other|>",))
    train_tokenizer([text_of(number) for number in range(50, 250)], str(folder / "other.json"), settings)
    return folder / "other.json"


def again(first: Path, output: Path, tokenizer: Path, *more: object, check: bool = True) -> str:
    words = ["retokenize", first, "--tokenizer", tokenizer, "--output", output, "--workers", 0, *more]
    done = run(*words, check=check)
    return done.stdout + done.stderr


def test_as_a_whole_run_gives_it_without_the_sources(tmp_path: Path) -> None:
    inputs = make_small_inputs(tmp_path / "inputs")
    other = other_tokenizer(tmp_path)
    run(*command(inputs, tmp_path / "first"))
    run(*command(inputs, tmp_path / "whole", "--set", f"tokenizer.path={other}"))
    for path in inputs.glob("*.jsonl"):
        path.unlink()
    said = again(tmp_path / "first", tmp_path / "new", other)
    assert "clean reused" in said and "dedup reused" in said
    whole = folder_files(tmp_path / "whole")
    assert digests(folder_files(tmp_path / "new")) == digests(whole)
    assert json.loads(whole["manifest.json"])["tokenizer"]["vocab_size"] != 300
    run("verify", tmp_path / "new")
    assert "nothing to do" in again(tmp_path / "first", tmp_path / "new", other)


def test_what_cannot_be_taken_over_is_said(tmp_path: Path) -> None:
    inputs = make_small_inputs(tmp_path / "inputs")
    run(*command(inputs, tmp_path / "first"))
    other = other_tokenizer(tmp_path)
    said = again(tmp_path / "first", tmp_path / "x", other, "--eos", "<|nowhere|>", check=False)
    assert "tokenizer.eos: '<|nowhere|>' given, which is not a token of it" in said
    assert not (tmp_path / "x").exists()
    shutil.copytree(tmp_path / "first" / "work", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "first" / "work")
    said = again(tmp_path / "first", tmp_path / "x", other, check=False)
    assert f"{tmp_path / 'first'}: there is no finished phase" in said
    again(tmp_path / "first", tmp_path / "y", other, "--documents", tmp_path / "elsewhere", "--eos", "<|other|>")
    assert json.loads((tmp_path / "y" / "manifest.json").read_text())["tokenizer"]["eos_id"] == 1
    said = again(tmp_path / "nothing", tmp_path / "z", other, check=False)
    assert "there is no _run.json; name the prefix of a run" in said


def test_changed_files_of_the_recipe_are_named(tmp_path: Path) -> None:
    """A list that phase 1 reads has changed since: its documents are not what this recipe would keep."""
    inputs = make_small_inputs(tmp_path / "inputs")
    (inputs / "blocked.txt").write_text("nobody.example\n")
    url = ["--set", "url.domain_lists=" + json.dumps([str(inputs / "blocked.txt")])]
    run(*command(inputs, tmp_path / "first", "--set", "url=true", *url))
    (inputs / "blocked.txt").write_text("a.example\n")
    said = again(tmp_path / "first", tmp_path / "x", other_tokenizer(tmp_path), check=False)
    assert "clean cannot be reused: it was made by another version of the code, its libraries or its files" in said


def test_an_export_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "_run.json").write_bytes(seal({"schema_version": 1, "kind": RUN_KIND}))
    with pytest.raises(ValueError, match="an export, not a run; name the prefix of the corpus"):
        recorded_run(str(tmp_path))
