"""Words tell their encoding: by language, undeclared, and against what is declared where that makes no sense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.charsets.decoders import decode_as
from refinery.transforms.extract.charsets.guess import CANDIDATES, guess
from refinery.transforms.extract.charsets.labels import MULTI_BYTE, SINGLE_BYTE
from refinery.transforms.extract.charsets.letters import LANGUAGES, folded, load, log_probabilities, turns

WESTERN = ("cp1252", "iso8859-15", "mac-roman")
TEXTS = {
    "Über den Dächern der Stadt müsste es schön sein, sagte die Bäckerin und öffnete früh.": WESTERN,
    "Il était une fois un garçon très fâché à qui l’on avait caché la clé du théâtre.": ("cp1252", "mac-roman"),
    "Perché la città è così bella? È più tranquilla, però non c'è nessuno a metà settimana.": WESTERN,
    "El niño pequeño soñó que mañana habría más días de otoño en la montaña.": WESTERN,
    "A irmã não comeu o pão de manhã porque já tinha saído para a estação.": WESTERN,
    "Hyvää päivää! Tämä sivu kertoo järvestä, jäästä ja siitä, mitä kesällä tehtiin.": ("cp1252", "iso8859-15"),
    "Þetta er stutt saga um bæinn við sjóinn þar sem enginn þekkti hvíta köttinn.": ("cp1252",),
    "Vajza e vogël është ulur në shtëpi, ndërsa nëna këndon një këngë të vjetër.": ("cp1252", "cp1250"),
    "Młoda kobieta wyszła wcześnie, żeby zdążyć na pociąg; później padał deszcz i śnieg.": ("cp1250", "iso8859-2"),
    "Žena přišla včera pozdě večer a řekla, že už dlouho neviděla tak krásné město.": ("cp1250", "iso8859-2"),
    "A kisfiú megkérdezte, hogy miért nem jön a következő hűvös őszi este.": ("cp1250", "iso8859-2"),
    "Mažoji mergaitė paklausė, kodėl šiandien žąsys neplaukia į ežerą.": ("cp1257", "iso8859-13", "iso8859-4"),
    "Mazā meitene jautāja, kāpēc šodien zosis nepeld uz ezeru, un māte smējās.": ("cp1257", "iso8859-13"),
    "Güneş doğarken yaşlı adam çarşıya gitti ve ıssız yoldan eve döndü.": ("cp1254",),
    "Утром старик вышел из дома и долго смотрел на реку.": ("cp1251", "koi8-r", "iso8859-5", "cp866", "mac-cyrillic"),
    "Вранці бабуся вийшла з хати й довго дивилася на річку, її онуки ще спали.": ("cp1251", "koi8-u"),
    "Το πρωί ο γέρος βγήκε από το σπίτι και κοίταζε ώρα πολλή το ποτάμι.": ("cp1253", "iso8859-7"),
    "בבוקר יצא הזקן מביתו והביט שעה ארוכה אל הנהר.": ("cp1255", "iso8859-8"),
    "خرج الشيخ من بيته في الصباح ونظر طويلا إلى النهر.": ("cp1256", "iso8859-6"),
    "ตอนเช้าชายชราออกจากบ้านแล้วมองแม่น้ำอยู่นาน": ("cp874",),
    "아침에 노인은 집을 나와 오랫동안 강을 바라보았다.": ("cp949",),
    "朝、老人は家を出て、長いあいだ川を見ていた。": ("cp932", "euc_jp"),
    "早上老人走出家门，久久地看着河水。": ("gb18030",),
    "早上老人走出家門，久久地看著河水。": ("big5hkscs",),
}
CASES = [(text, name) for text, names in TEXTS.items() for name in names]


@pytest.mark.parametrize(("text", "name"), CASES)
def test_a_sentence_tells_its_encoding(text: str, name: str) -> None:
    data = text.encode(name)
    assert decode_as(data, guess(data, [])) == text
    page = b"<html><head><title>x</title></head><body><p class='a'>" + data + b"</p></body></html>"
    assert decode_as(page, guess(page, [])) == decode_as(page, name)


@pytest.mark.parametrize(("text", "name"), CASES)
def test_a_wrong_label_does_not_win_over_a_sentence(text: str, name: str) -> None:
    data = text.encode(name)
    labels = ("cp1252", "gb18030", "cp932", "cp1251")
    for label in labels[: 3 if name == "mac-cyrillic" else 4]:  # but for its capital that is windows-1251, too
        assert decode_as(data, guess(data, [label])) == text, label


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("naïve", "cp1252"),
        ("São Paulo", "cp1252"),
        ("Göteborg", "cp1252"),
        ("Łódź żółty", "cp1250"),
        ("Příliš žluťoučký", "cp1250"),
        ("Καλημέρα κόσμε", "cp1253"),
        ("Привет мир", "cp1251"),
        ("güneş ışığı", "cp1254"),
        ("Bu kitap çok güzel", "cp1254"),
        ("Het café is open", "cp1252"),
        ("Taková věc", "cp1250"),
        ("price 5 € – it’s “here”", "cp1252"),
        ("20 °C ± 3 µm © 2019", "cp1252"),
    ],
)
def test_a_few_words_in_an_english_page(words: str, name: str) -> None:
    plain = "The list of names and places follows in one column, and all else is written in plain letters. "
    data = (plain * 3).encode() + words.encode(name) + (". " + plain * 3).encode()
    assert words in decode_as(data, guess(data, []))


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        (b"\xc1", ["koi8-r"], "а"),  # so little says nothing: the label does
        (b"\xc1", ["cp1251"], "Б"),
        (b"\xc1", ["cp1253"], "Α"),
        (b"\xf9\xc8\xd1\xec\xe5\xc9\xed", ["cp1255"], "שָׁלוֹם"),
        (b"\xa3\xf3d\x9f", ["iso8859-2"], "Łódź"),
        (b"caf\xe9 \x85", ["iso8859-15"], "café …"),
        (b"\x87@\x87\x8a\xc3\xbd\xc4", ["cp932"], "①㈱ﾃｽﾄ"),
    ],
)
def test_a_label_decides_where_words_do_not(data: bytes, declared: list[str], text: str) -> None:
    assert decode_as(data, guess(data, declared)) == text


@pytest.mark.parametrize(
    ("text", "name", "label"),
    [
        ("Zmluva bola podpísaná v škole za účasti všetkých.", "cp1250", "cp1251"),  # an alphabet in another's words
        ("Het café op de hoek is elke dag geopend, ook in de zomer.", "cp1252", "cp1251"),
        ("Op zondag zijn we geïnteresseerd in de natuur.", "cp1252", "gb18030"),  # an ideograph between letters
        ("Toda la información está en la página de ayuda.", "mac-roman", "cp1252"),
        ("Na zahtevo vam pošljemo račun. Želite več?", "iso8859-2", "cp1252"),  # a symbol before a letter
        ("Моя семья живёт в большом доме. Держим собаку.", "mac-cyrillic", "cp1251"),  # a capital among small letters
        ("Hun støtter ham hver dag.", "mac-roman", "cp1251"),  # no Danish page is in windows-1257
        ("חברת Acme Media Group בדקה את Sky News, Fox Sports ו־Channel Five", "cp1255", "cp1251"),  # foreign names
        ("Per la notte si prevede una minima di 12° e una massima di 19°, il tempo è sereno.", "iso8859-15", ""),
        ("Maтeрњи jeзик je вaжaн зa свe нaс, a нaрoчитo зa дeцу.", "cp1251", ""),  # Latin letters that look the same
    ],
)
def test_words_are_those_of_a_language_that_the_encoding_is_for(text: str, name: str, label: str) -> None:
    data = text.encode(name)
    assert decode_as(data, guess(data, [label] if label else [])) == decode_as(data, name)


@pytest.mark.parametrize("name", ["cp1250", "iso8859-2"])
def test_a_label_decides_between_cedillas_and_commas_below(name: str) -> None:
    text = "Această opţiune selectaţi-o şi în locul ştergerii contului, dacă doriţi să îl păstraţi."
    data = text.encode(name)
    assert decode_as(data, guess(data, [name])) == text


def test_a_label_of_defaults_weighs_less_than_one_that_was_chosen() -> None:
    data = "Datu privātuma principi".encode("cp1257")
    assert decode_as(data, guess(data, ["cp1257"])) == data.decode("cp1257")
    data = "Ķēve ir mājās.".encode("cp1257")
    assert decode_as(data, guess(data, ["cp1252"])) == data.decode("cp1257")


@given(st.binary(max_size=400), st.lists(st.sampled_from(sorted(MULTI_BYTE | SINGLE_BYTE)), max_size=2))
def test_any_bytes_have_an_encoding(data: bytes, declared: list[str]) -> None:
    assert guess(data, declared) in {*CANDIDATES, *declared}


@given(st.sampled_from(CASES), st.integers(0, 200))
def test_what_stands_around_changes_nothing(case: tuple[str, str], spaces: int) -> None:
    text, name = case
    data = text.encode(name)
    assert guess(b"<br>\n" * spaces + data + b"\n" * spaces, []) == guess(data, [])


def test_only_a_sample_of_a_long_page_is_looked_at() -> None:
    data = "Žena přišla včera a řekla, že neviděla tak krásné město. ".encode("cp1250")
    assert guess(data + b"\xff\xfe\x80 " * 4_000, []) == guess(data + b"\xff\xfe\x80 ", [])


def plain(former: str, later: str, language: str) -> float:
    """The formula of `letters` for a pair that was counted in a language, without logarithms and tables."""
    counts = {tuple(map(int, row[:3])): int(row[3]) for row in load_counts()}
    number = LANGUAGES.index(language)
    total = sum(times for (other, _, second), times in counts.items() if other == number and not second)
    before, alone = counts[number, ord(former), 0], counts[number, ord(later), 0]
    pair = counts.get((number, ord(former), ord(later)), 0)
    return (pair + 12 * alone / (total + 600)) / (before + 12)


def load_counts():  # type: ignore[no-untyped-def]
    from importlib.resources import files

    import numpy as np

    with files("refinery.transforms.extract.charsets").joinpath("letters.npy").open("rb") as stream:
        return np.load(stream)


@pytest.mark.parametrize(
    ("pair", "language"), [("th", "eng"), ("sz", "pol"), ("ст", "rus"), ("ñ"[:1] + "o", "spa"), ("αι", "ell")]
)
def test_probabilities_are_those_of_the_formula(pair: str, language: str) -> None:
    found = log_probabilities(pair)[LANGUAGES.index(language)] / 256
    assert 2.718281828 ** float(found) == pytest.approx(plain(*pair, language), rel=0.01)


def test_probabilities_add_up() -> None:
    one, two = log_probabilities("ab"), log_probabilities("bc")
    assert (log_probabilities("abc") == one + two).all()
    assert (log_probabilities("") == 0).all()
    many = "".join(chr(0x4E00 + number) for number in range(40_000) if number < 20_000)
    assert log_probabilities(many).shape == (len(LANGUAGES),)
    assert (log_probabilities("abc") == one + two).all()
    assert load() is load()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("мОя", 2),
        ("Моя", 0),
        ("aÉb", 2),
        ("a€b", 1),
        ("a’b", 0),
        ("5€", 0),
        ("naïve", 0),
        ("éA", 1),
        ("aB", 0),
        (" ĄTai", 1),
        ("ÉTÉ", 0),
        ("aÄRz", 1),
        ("гуl", 1),
        ("Uhiжenje", 2),
        ("αбвгд", 1),
        ("бaбaбaбa", 4),
        ("ﾄndring", 1),
        ("be飊vl", 1),
        ("Tシャツ", 0),
        ("®elijo", 1),
        ("Word®", 0),
        ("12°C", 0),
        ("сам╕", 1),
        ("µm", 0),
        ("2ªa", 0),
        ("", 0),
    ],
)
def test_turns(text: str, count: int) -> None:
    assert turns(text) == count


def test_texts_are_folded() -> None:
    assert folded("“Ä” 12…\tx–y") == ' "ä" 00. x-y '


def test_every_candidate_is_there_once() -> None:
    assert len(CANDIDATES) == len(set(CANDIDATES))
    assert set(CANDIDATES) == (MULTI_BYTE | SINGLE_BYTE) - {"utf-16-le", "utf-16-be", "iso2022_jp"}
