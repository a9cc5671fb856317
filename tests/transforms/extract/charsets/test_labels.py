"""The whole table of labels of the Encoding Standard, and what else names an encoding."""

import codecs
import sys
from encodings.aliases import aliases

import pytest

from refinery.transforms.extract.charsets import labels
from refinery.transforms.extract.charsets.labels import MULTI_BYTE, SINGLE_BYTE, python_codec

# "Names and labels", whole.
WHATWG = {
    "UTF-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "IBM866": "866 cp866 csibm866 ibm866",
    "ISO-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "ISO-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "ISO-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "ISO-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "ISO-8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
    "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "ISO-8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
    "iso_8859-7:1987 sun_eu_greek",
    "ISO-8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 "
    "iso_8859-8 iso_8859-8:1988 visual",
    "ISO-8859-8-I": "csiso88598i iso-8859-8-i logical",
    "ISO-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "ISO-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "ISO-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "ISO-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "ISO-8859-16": "iso-8859-16",
    "KOI8-R": "cskoi8r koi koi8 koi8-r koi8_r",
    "KOI8-U": "koi8-ru koi8-u",
    "macintosh": "csmacintosh mac macintosh x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "windows-1250": "cp1250 windows-1250 x-cp1250",
    "windows-1251": "cp1251 windows-1251 x-cp1251",
    "windows-1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
    "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
    "windows-1253": "cp1253 windows-1253 x-cp1253",
    "windows-1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
    "windows-1254 x-cp1254",
    "windows-1255": "cp1255 windows-1255 x-cp1255",
    "windows-1256": "cp1256 windows-1256 x-cp1256",
    "windows-1257": "cp1257 windows-1257 x-cp1257",
    "windows-1258": "cp1258 windows-1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "GBK": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "gb18030": "gb18030",
    "Big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "EUC-JP": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "ISO-2022-JP": "csiso2022jp iso-2022-jp",
    "Shift_JIS": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "EUC-KR": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
    "windows-949",
    "replacement": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
    "UTF-16BE": "unicodefffe utf-16be",
    "UTF-16LE": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "x-user-defined": "x-user-defined",
}
# Where the name of Python's codec is another one; "" decodes nothing.
CODECS = {
    "IBM866": "cp866",
    "ISO-8859-8-I": "iso8859-8",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "GBK": "gb18030",
    "Big5": "big5hkscs",
    "EUC-JP": "euc_jp",
    "ISO-2022-JP": "iso2022_jp",
    "Shift_JIS": "cp932",
    "EUC-KR": "cp949",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "x-user-defined": "cp1252",
    "replacement": "",
}


def codec_of(name: str) -> str:
    if name in CODECS:
        return CODECS[name]
    return name.lower().replace("windows-", "cp").replace("iso-", "iso")


def test_the_table_is_whole() -> None:
    assert sum(len(names.split()) for names in WHATWG.values()) == 228
    assert len(WHATWG) == 40
    assert {codec_of(name) for name in WHATWG} - {""} == MULTI_BYTE | SINGLE_BYTE


@pytest.mark.parametrize("name", WHATWG)
def test_every_label_of_the_standard_is_known(name: str) -> None:
    for label in WHATWG[name].split():
        for written in (label, label.upper(), f" {label}\t\n", f'"{label}";'):
            assert python_codec(written) == codec_of(name), written


@pytest.mark.parametrize("codec", sorted(MULTI_BYTE | SINGLE_BYTE))
def test_every_name_is_a_codec_of_python(codec: str) -> None:
    assert codecs.lookup(codec)
    assert python_codec(codec) == codec


@pytest.mark.parametrize(
    "label",
    [
        "utf-7",
        "iso-2022-kr",
        "zlib",
        "rot13",
        "idna",
        "unicode_escape",
        "undefined",
        "none",
        "",
        "a\0b",
        "é",
        "x" * 1000,
    ],
)
def test_other_labels_mean_nothing(label: str) -> None:
    assert python_codec(label) == ""


def test_labels_import_nothing_and_mean_what_python_means() -> None:
    """All of Python's aliases in several spellings; a label that only a module of `encodings` knows means nothing."""
    larger = {codecs.lookup(name).name: codec for name, codec in labels._LARGER.items()}

    def looked_up(label: str) -> str:
        if label in labels.LABELS:
            return labels.LABELS[label]
        try:
            name = codecs.lookup(label).name
        except LookupError:
            return ""
        name = larger.get(name, name)
        return name if name in MULTI_BYTE | SINGLE_BYTE else ""

    sys.modules.pop("encodings.punycode", None)
    assert python_codec("punycode") == python_codec("unicode_escape") == python_codec("hostile") == ""
    assert "encodings.punycode" not in sys.modules
    for name in {*aliases, *aliases.values(), *MULTI_BYTE, *SINGLE_BYTE}:
        for label in (name, name.replace("_", "-"), name.replace("_", " "), name.replace("-", ""), f"x-{name}"):
            assert python_codec(label) == looked_up(label.lower()), label
