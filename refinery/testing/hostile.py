"""Texts that a crawl has now and then, and that nobody thinks of: what every stage has to survive."""

from collections.abc import Mapping

LARGE = 1_000_000  # characters

HOSTILE: Mapping[str, str] = {
    "empty": "",
    "white space": " \n\t\u00a0\u2003\u3000\n\n ",
    "one character": "x",
    "NULs": "a\0b\0\0 text with\0 NULs\n\0",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\x85\x9f",
    "a lone high surrogate": "before \ud83d after",
    "lone low surrogates": "\udc00\udfff",
    "non-characters": "\ufffe\uffff\U0001ffff\U0010ffff\ufdd0",
    "a byte order mark": "\ufeffbegins with one\ufeff",
    "right to left": "שלום עולם. مرحبا بالعالم، كيف الحال؟",
    "overrides of direction": "abc\u202edcba\u202c \u2066x\u2069 \u200f\u200e end",
    "no spaces": "中文没有空格。日本語も。ไม่มีช่องว่าง",
    "combining marks": "Z\u0351\u036b\u0343" + "\u0300" * 200 + "algo",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇩 👍🏿",
    "decomposed and composed": "e\u0301é ﬁ ① K ſ İ ı ß ẞ",
    "line ends": "a\rb\r\nc\u2028d\u2029e\x0bf\x0cg\x1ch\x85i",
    "brackets": "((((" * 300 + "[[{{<<" * 200,
    "quotes and slashes": "\"'`\\\\//%s{}{0}$x\\u0000\\x00" * 20,
    "markup": "<html><script>alert(1)</script><![CDATA[x]]></p><p a=\"<&amp;'>",
    "an address and keys": "https://user:pw@example.org:99999/%zz?q=\x00#f " + "A" * 200,
    "numbers": "1e999 -0 NaN inf ١٢٣ ⅷ ²³ 0x7fffffffffffffff 99999999999999999999999",
}

# Shapes of long texts, as what is repeated: work that grows faster than the text shows in one of them.
SHAPES: Mapping[str, str] = {
    "one character": "a",
    "words": "some words of a text ",
    "lines": "a line\n",
    "empty lines": "\n",
    "white space": " ",
    "digits": "1234567890 ",
    "no spaces": "漢字",
    "punctuation": ".,;:-",
    "brackets": "([{<",
    "addresses": "a.b@c.d/e?f=g&",
}


def long_text(shape: str, characters: int) -> str:
    """A text of that length, of one of the SHAPES."""
    piece = SHAPES[shape]
    return (piece * (characters // len(piece) + 1))[:characters]
