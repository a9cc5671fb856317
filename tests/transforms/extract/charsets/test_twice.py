"""Text that was encoded twice comes back, right text never changes, and talk of such signs is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.charsets.twice import _classes, repaired, repaired_page
from refinery.transforms.native import mojibake
from tests.sampling import one_commit_in_four

RIGHT = [
    "We’re “here” — at the café, naïve as ever…",
    "Größe, Straße, Übermut: ‚so‘ steht es da – „fast“ immer.",
    "L’été, où est-ce ? « Là-bas », répondit-il à l’âne. ÉTÉ",
    "NÃO É MANHÃ, SÃO JOÃO; â, ê, ô; Â.",
    "România: ÎNCĂ, ÂNTÂI, căţel, şi",
    "Vâng, tôi ở đây; Ăn, Âm, Ơn, ƯỚC.",
    "Съешь же ещё этих мягких французских булок. РС, СССР, Р.С.",
    "Її їжак, нії, ЇЇ; Ўсё",
    "Žluťoučký kůň; ĂÎ ąęś «ja»",
    "日本語のテキスト、中文文本、한국어 텍스트",
    "Ελληνικά κείμενα εδώ· Γεια σου Γιώργο",
    "√2 ≈ 1,41; ∆x → 0; “Δ” ‚x‘ √Ω",
    "ASCII only",
    "",
]
WRONG = [
    "We’re “here” — café",
    "Größe",
    "Zażółć gęślą jaźń",
    "Съешь же ещё этих мягких",
    "Ελληνικά κείμενα",
    "日本語のテキスト",
]


def twice(text: str, codec: str) -> str:
    """`text` in UTF-8, taken for another encoding; holes are controls."""
    signs = []
    for byte in text.encode():
        try:
            signs.append(bytes([byte]).decode(codec))
        except UnicodeDecodeError:
            signs.append(chr(byte))
    return "".join(signs)


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
def test_what_was_encoded_twice_comes_back(text: str, codec: str) -> None:
    assert repaired(twice(text, codec)) == text
    assert repaired(f"{RIGHT[0]}\n{twice(text, codec)}\n{RIGHT[6]}") == f"{RIGHT[0]}\n{text}\n{RIGHT[6]}"


@pytest.mark.parametrize(
    ("text", "codec"),
    [(WRONG[0], "mac-roman"), (WRONG[0], "cp437"), (WRONG[0], "cp1250"), (WRONG[3], "cp1251"), (WRONG[2], "cp1250")],
)
def test_other_encodings_too(text: str, codec: str) -> None:
    assert repaired(twice(text, codec)) == text


@pytest.mark.parametrize("text", RIGHT)
def test_right_text_stays(text: str) -> None:
    assert repaired(text) == text
    assert repaired_page(f"<p>{text}</p>") == f"<p>{text}</p>"


@pytest.mark.parametrize(
    "text",
    ['I saw "Ã¤" instead of "ä".', "An apostrophe becomes “â€™” then.", "(Ã©) is é", "`Ã©` is mojibake, as is 'Ã¼'."],
)
def test_talk_of_such_signs_stays(text: str) -> None:
    assert repaired(text) == text


@given(st.text(st.sampled_from("aé ÄÖ“”—–’«»яЖçãâÂÃ€\n日ș"), max_size=60))
def test_what_is_repaired_was_suspect_and_lines_stay(text: str) -> None:
    found = repaired(text)
    assert found.count("\n") == text.count("\n")
    assert found == text or mojibake.suspect(text, _classes())
    for before, after in zip(text.split("\n"), found.split("\n"), strict=True):
        assert before == after or mojibake.suspect(before, _classes())


@one_commit_in_four
@given(st.text(max_size=80))
def test_any_text_is_taken(text: str) -> None:
    repaired(text).encode("utf-8", "surrogatepass")
    repaired_page(text.encode("utf-8", "ignore"))


def test_pages_are_repaired_outside_scripts() -> None:
    wrong = twice("It’s “here”", "latin-1")
    right = "It’s “here”"
    page = f"<p title='{wrong}'>{wrong} <b>{wrong}</b></p><script>x = '{wrong}'</script><i>{wrong}</i>{RIGHT[0]}"
    right = f"<p title='{right}'>{right} <b>{right}</b></p><script>x = '{wrong}'</script><i>{right}</i>{RIGHT[0]}"
    assert repaired_page(page.encode()) == right.encode()
    assert repaired_page(page) == right.encode()
    assert repaired_page(f"<script>{wrong}".encode()) == f"<script>{wrong}".encode()


@given(st.text(st.sampled_from("ab\x80\x9f\xa0é\u0100€"), max_size=30))
def test_controls_are_found(text: str) -> None:
    assert mojibake.controls(text.encode()) == any("\x80" <= sign <= "\x9f" for sign in text)


def test_wrong_arguments_are_refused() -> None:
    assert not mojibake.controls(b"\xc2")
    with pytest.raises(ValueError, match="classes: 1 bytes given, 65536 are needed"):
        mojibake.suspect("é", b"x")
    with pytest.raises(TypeError):
        mojibake.suspect(b"x", _classes())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        mojibake.controls("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["â€", "Ã", "\x80", "<", "Ã©<", "Â\n"])
def test_long_runs_take_linear_time(unit: str) -> None:
    text = unit * 20_000
    repaired(text)
    repaired_page(text)
