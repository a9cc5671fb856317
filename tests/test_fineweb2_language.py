"""The recipe of FineWeb2 for another language, from a file of figures like those that the project published."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "recipes/fineweb2_language.py"))
BASE = yaml.safe_load((ROOT / "recipes/fineweb2.yaml").read_text(encoding="utf-8"))

CONFIG: dict[str, Any] = {  # of German, as recipes/fineweb2.yaml has them
    "language_score": 0.821,
    "dup_line_frac": 0.263,
    "dup_n_grams": [[5, 0.141], [6, 0.134], [7, 0.126], [8, 0.117], [9, 0.108], [10, 0.098]],
    "top_n_grams": [[2, 0.169], [3, 0.153], [4, 0.137]],
    "line_punct_thr": 0.0,
    "min_avg_word_length": 0,
    "max_avg_word_length": 15,
    "max_non_alpha_words_ratio": 0.774,
    "new_line_ratio": 0.152,
    "stopwords": [
        "der",
        "und",
        "die",
        "in",
        "von",
        "im",
        "den",
        "des",
        "mit",
        "das",
        "er",
        "dem",
        "als",
        "wurde",
        "für",
    ],
}


def test_the_recipe_for_german_has_the_published_figures() -> None:
    made = SCRIPT["language_recipe"](BASE, CONFIG, "deu_Latn")
    assert parse_recipe(made).heuristics == load_recipe(str(ROOT / "recipes/fineweb2.yaml")).heuristics
    assert made == {**BASE, "name": "fineweb2-deu-latn"}


def test_another_language_changes_its_own_figures_alone() -> None:
    config = dict.fromkeys(CONFIG, 0.5) | {
        "dup_n_grams": [[n, 0.05] for n in range(5, 11)],
        "top_n_grams": [[n, 0.06] for n in range(2, 5)],
        "stopwords": ["og", "i"],
    }
    made = SCRIPT["language_recipe"](BASE, config, "nob_Latn")
    assert made["language"]["languages"] == {"nob_Latn": 0.5}
    assert made["heuristics"]["gopher"]["stop_words"] == {"nob_Latn": ["og", "i"]}
    assert made["heuristics"]["repetition"]["max_duplicate_10_grams"] == 0.05
    assert made["heuristics"]["repetition"]["max_duplicate_paragraphs"] is None
    assert made["heuristics"]["fineweb"] == {**BASE["heuristics"]["fineweb"], "min_terminal_lines": 0.5} | {
        "max_newline_ratio": 0.5
    }
    assert {key: made[key] for key in made if key not in ("name", "language", "heuristics")} == {
        key: BASE[key] for key in BASE if key not in ("name", "language", "heuristics")
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dup_line_frac: 0.1\n", "'dup_n_grams', "),
        ("- 1\n", "no keys and values"),
        ("{", "expected"),
        (yaml.safe_dump({**CONFIG, "top_n_grams": 3}), "not iterable"),
        (yaml.safe_dump({**CONFIG, "\x1b[2J": 3}), "\\x1b[2J"),
    ],
)
def test_other_files_end_with_a_line(text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deu_Latn.yml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["fineweb2_language.py", str(path)])
    with pytest.raises(SystemExit) as ended:
        SCRIPT["main"]()
    assert says in str(ended.value) and "\n" not in str(ended.value) and "\x1b" not in str(ended.value)


def test_the_printed_recipe_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    path = tmp_path / "nob_Latn.yml"
    path.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["fineweb2_language.py", str(path)])
    SCRIPT["main"]()
    assert parse_recipe(yaml.safe_load(capsys.readouterr().out)).language.languages == {"nob_Latn": 0.821}
