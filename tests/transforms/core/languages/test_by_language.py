"""Tables of numbers by language: what is read, what is refused; codes of models' labels."""

from pathlib import Path

import pytest

from refinery.transforms.core.languages.by_language import number_of, read_language_numbers
from refinery.transforms.core.languages.codes import CODES, canonical, language_and_script


def table(folder: Path, text: str, name: str = "t.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", "", "the header '' (empty text) given"),
        ("en,0.5\n", "", "the header 'en,0.5' (text) given, language and names of other columns are needed"),
        ("language\nen\n", "", "the header 'language' (text) given"),
        ("language,a,b\nen,1,2\n", "", "columns a, b found, one of them must be named with `column`"),
        ("language,a\nen,1\n", "aa", "column 'aa' (text) given, did you mean a?"),
        ("language,a\nen,1\nen,2\n", "", "line 3: 'en' (text) given, a language that no line before has is needed"),
        ("language,a\nen,1,2\n", "", "line 2: 3 cells found, 2 are needed"),
        ("language,a\n#\nen,nan\n", "", "line 3: 'nan' (text) given, a number is allowed"),
        ("language,a\nen,1e999\n", "", "line 2: '1e999' (text) given, a number is allowed"),
        ('language,a\n"en\n,1"\n', "", "line 2: unexpected end of data"),
        ("language,a\nen,\n", "", "no number found"),
        ("\0", "", "the header"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, text: str, column: str, problem: str) -> None:
    path = table(tmp_path, text)
    with pytest.raises(ValueError) as error:
        read_language_numbers(path, column)
    assert problem in str(error.value) and "\n" not in str(error.value)


def test_languages_in_scripts(tmp_path: Path) -> None:
    numbers = read_language_numbers(table(tmp_path, "language,a\neng_Latn,1\nsrp_Cyrl,2\nsrp_Latn,3\nko,4\n"))
    assert number_of(numbers, "en") == number_of(numbers, "en", "Latn") == 1  # one script alone is the language
    assert number_of(numbers, "sr", "Cyrl") == 2 and number_of(numbers, "sr", "Latn") == 3
    assert number_of(numbers, "sr") is None  # which of both is not known
    assert number_of(numbers, "ko", "Hang") == 4 and number_of(numbers, "de", "Latn") is None
    with pytest.raises(ValueError, match="line 3: 'en_Latn'"):
        read_language_numbers(table(tmp_path, "language,a\neng_Latn,1\nen_Latn,2\n"))


@pytest.mark.parametrize(
    ("label", "code", "script"),
    [
        ("eng_Latn", "en", "Latn"),
        ("cmn_Hani", "zh", "Hani"),
        ("nob_Latn", "no", "Latn"),
        ("nno_Latn", "nn", "Latn"),
        ("als_Latn", "sq", "Latn"),  # Tosk Albanian; lid.176 means Alemannic by `als`
        ("arz_Arab", "arz", "Arab"),
        ("zho_Hans_variant", "zh", "Hans"),
        ("als", "als", ""),
        ("en", "en", ""),
        ("EN_latn", "EN_latn", ""),
        ("", "", ""),
    ],
)
def test_labels_of_models(label: str, code: str, script: str) -> None:
    assert language_and_script(label) == (code, script)
    assert canonical(label) == canonical(canonical(label)) == (f"{code}_{script}" if script else code)


def test_the_codes_are_codes() -> None:
    assert len(CODES) > 200 and all(len(member) == 3 and len(code) == 2 for member, code in CODES.items())
