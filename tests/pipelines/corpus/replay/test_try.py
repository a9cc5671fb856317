"""`refinery try`: one document through every stage."""

import json
from pathlib import Path

import pytest
import yaml

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.replay.decision_text import advice_words
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import text_of
from tests.sampling import one_commit_in_four


@pytest.fixture(scope="module")
def recipe(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small recipe with the rules of Gopher on."""
    path = tmp_path_factory.mktemp("try") / "recipe.yaml"
    rules = {"basic": {"min_chars": 20}, "gopher": {"min_words": 26, "stop_words": {}}}
    off = {"repetition": False, "c4": False, "fineweb": False}
    path.write_text(yaml.safe_dump({**yaml.safe_load((small / "recipe.yaml").read_text()), "heuristics": rules | off}))
    return path


def test_a_text_comes_through_with_what_its_rules_measured(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text(text_of(1))
    text = run("try", recipe, "--text", tmp_path / "page.txt").stdout
    assert "heuristics                  kept" in text
    assert "gopher.min_words 26 ≥ 26" in " ".join(text.split())
    assert "exact-duplicates            needs the other documents" in text
    assert "    tokens = " in text


def test_a_drop_names_the_rule_and_what_it_measured(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<html><body><p>{' '.join(text_of(1).split()[:12])}</p></body></html>")
    done = run("try", recipe, "--text", tmp_path / "page.html", "--html", "--json", check=False)
    assert done.returncode == 1
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["stage"], last["outcome"]) == ("heuristics", "dropped")
    assert last["reason"].startswith("gopher-too-few-words: ")
    found = {tuple(each["rule"]["path"]): (each["value"], each["drops"]) for each in last["readings"]}
    assert found["gopher", "min_words"] == (12, True)
    kept = run("try", recipe, "--text", tmp_path / "page.html", "--html", "--set", "heuristics.gopher.min_words=12")
    assert "  - " not in kept.stdout


@one_commit_in_four
def test_a_record_of_the_sources_is_read_again(recipe: Path, small: Path, tmp_path: Path) -> None:
    by_url = run("try", recipe, "--url", "https://a.example/3", "--json").stdout
    offset = sum(len(line) for line in (small / "a.jsonl").read_bytes().splitlines(keepends=True)[:3])
    assert run("try", recipe, "--origin", f"{small / 'a.jsonl'}@{offset}", "--json").stdout == by_url
    run("refine", recipe, "--workers", 0, "--quiet", "--output", tmp_path / "out")
    assert run("try", recipe, "--url", "https://a.example/3", "--url-from", tmp_path / "out", "--json").stdout == by_url


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--origin", "nowhere.jsonl@3"], "refinery: 'nowhere.jsonl' is not an input file of the recipe"),
        (["--url", "https://nowhere.example/"], "refinery: https://nowhere.example/: not found in 2 tasks"),
        (["--url", "x", "--html"], "refinery: --html and --address belong to --text FILE"),
        (["--text", "x", "--url-from", "y"], "refinery: --url-from belongs to --url"),
        (["--url", "x", "--bogus"], "refinery: unknown argument: --bogus"),
    ],
)
def test_wrong_commands(recipe: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["try", str(recipe), *words]) is ExitCode.USAGE
    assert capsys.readouterr().err.startswith(message)


def test_a_record_that_no_reader_gives(recipe: Path, small: Path) -> None:
    offset = (small / "a.jsonl").read_bytes().index(b'{"text": "broken')
    done = run("try", recipe, "--origin", f"{small / 'a.jsonl'}@{offset}", check=False)
    assert done.returncode == 2
    assert "the reader makes no document of it: " in done.stderr


def test_more_than_the_limit(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("x" * 2000)
    limit = ("--set", "limits.max_record_bytes=1000")
    done = run("try", recipe, "--text", tmp_path / "long.txt", *limit, check=False)
    assert done.stderr.startswith("refinery: --text: more than 1,000 bytes given (limits.max_record_bytes); ")


def test_what_the_language_would_have_been(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text(
        "Der Fluss steigt im Herbst, und die Wiesen östlich der Stadt stehen unter Wasser."
    )
    settings = ("--set", "language.languages=[en]", "--set", "heuristics=off")
    done = run("try", recipe, "--text", tmp_path / "page.txt", *settings, check=False)
    assert done.returncode == 1
    assert "  - language-not-allowed: " in done.stdout
    assert "    language = de\n    language_score = " in done.stdout


@pytest.mark.parametrize(
    ("advice", "words"),
    [
        ("lower it", "if that is too much: lower it"),
        ("nothing; images are not read", "images are not read"),
        ("nothing: fail closed", "fail closed"),
        ("nothing", ""),
        ("", ""),
    ],
)
def test_advice_stands_alone(advice: str, words: str) -> None:
    assert advice_words(advice) == words
