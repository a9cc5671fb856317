"""Legacy encodings in 40 languages: how many texts are decoded rightly, declared, undeclared and wrongly declared.

Run: python -m benchmarks.charset TEXTS.jsonl.gz [--most 60] [--cells]

TEXTS: JSON lines with `text`, `lang_macro` (ISO 639-3) and `licence`; only those that the detector's counts were not
made of (`pipelines/training/letters.py`, held_out and SHARE_ALIKE). Each is encoded in the encodings that its language
was written in on the web, as the body of an HTML page, where something is left that is not UTF-8. Beside this project:
trafilatura's decode_file and charset-normalizer's best match. A text is right if it comes out character for
character, NFC aside. Declared: by a meta element. Wrongly declared: by one that says utf-8, iso-8859-1, windows-1251
or gb2312 in turn, whichever is another encoding. --cells prints each pair of language and encoding, else only those
where another one is right more often.
"""

import argparse
import gzip
import json
import logging
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from refinery.pipelines.training.letters import SHARE_ALIKE, held_out
from refinery.transforms.extract.charset import decode_page
from refinery.transforms.extract.charsets.decoders import decode_as
from refinery.transforms.extract.charsets.labels import python_codec

WESTERN = "windows-1252 macintosh iso-8859-15"
NORDIC = "windows-1252 macintosh"
CENTRAL = "windows-1250 iso-8859-2"
ENCODINGS = {
    **dict.fromkeys(["eng", "deu", "fra", "spa", "por", "ita"], WESTERN),
    **dict.fromkeys(["cat", "nld", "fin"], "windows-1252 iso-8859-15"),
    **dict.fromkeys(["dan", "swe", "nor", "isl"], NORDIC),
    **dict.fromkeys(["ces", "slk", "hun", "slv", "hrv"], CENTRAL),
    **dict.fromkeys(["pol", "ron"], f"{CENTRAL} iso-8859-16"),
    **dict.fromkeys(["lav", "lit"], "windows-1257 iso-8859-13 iso-8859-4"),
    "est": "windows-1257 iso-8859-13 iso-8859-15 windows-1252",
    "sqi": "windows-1252 windows-1250",
    "srp": "windows-1251 iso-8859-5 windows-1250",
    "bul": "windows-1251 iso-8859-5 ibm866 x-mac-cyrillic",
    "rus": "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic",
    "ukr": "windows-1251 koi8-u x-mac-cyrillic",
    **dict.fromkeys(["bel", "mkd"], "windows-1251 iso-8859-5"),
    "ell": "windows-1253 iso-8859-7",
    "tur": "windows-1254",
    "heb": "windows-1255 iso-8859-8",
    "ara": "windows-1256 iso-8859-6",
    "fas": "windows-1256",
    "tha": "windows-874",
    "vie": "windows-1258",
    "kor": "euc-kr",
    "jpn": "shift_jis euc-jp iso-2022-jp",
    "zho": "gb18030 big5",
}
WRONG = ("utf-8", "iso-8859-1", "windows-1251", "gb2312")
WAYS = ("undeclared", "declared", "wrongly declared")
TONES = "\u0300\u0301\u0303\u0309\u0323"


def encoded(text: str, label: str) -> bytes | None:
    """`text` in an encoding, or None where it cannot be. Vietnamese tones are separated for windows-1258."""
    codec = python_codec(label)
    if codec == "cp1258":
        parts = (unicodedata.normalize("NFD", sign) for sign in text)
        text = "".join(
            unicodedata.normalize("NFC", "".join(sign for sign in part if sign not in TONES))
            + "".join(sign for sign in part if sign in TONES)
            for part in parts
        )
    try:
        data = text.encode(codec)
    except UnicodeEncodeError:
        return None
    try:
        return data if b"\x1b" in data or not data.decode() else None
    except UnicodeDecodeError:
        return data


def page(body: bytes, label: str) -> bytes:
    """An HTML page in a legacy encoding; a label declares it."""
    meta = f'<meta charset="{label}">'.encode() if label else b""
    return b"<html><head>" + meta + b"<title>Page</title></head><body><p>" + body + b"</p></body></html>"


def decoders() -> dict[str, Callable[[bytes], str]]:
    """How each library makes text of a page."""
    import charset_normalizer
    import trafilatura.utils

    logging.disable(logging.CRITICAL)
    return {
        "refinery": lambda data: decode_page(data, "", is_html=True),
        "trafilatura": trafilatura.utils.decode_file,
        "charset-normalizer": lambda data: str(charset_normalizer.from_bytes(data).best() or ""),
    }


def read_texts(path: str, most: int) -> Iterator[tuple[str, str]]:
    """Language and text, `most` texts of a language."""
    taken: Counter[str] = Counter()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            language, text = row["lang_macro"], unicodedata.normalize("NFC", row["text"])
            unseen = SHARE_ALIKE in row["licence"] or held_out(row["text"])
            usable = unseen and not any("\x80" <= sign <= "\x9f" for sign in text)
            if language in ENCODINGS and usable and taken[language] < most and not text.isascii():
                taken[language] += 1
                yield language, text


def main() -> None:
    """Encode, decode, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts")
    parser.add_argument("--most", type=int, default=60, help="texts of a language")
    parser.add_argument("--cells", action="store_true")
    given = parser.parse_args()
    libraries = decoders()
    right: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    seconds: defaultdict[str, float] = defaultdict(float)
    size = 0
    for number, (language, text) in enumerate(read_texts(given.texts, given.most)):
        for label in ENCODINGS[language].split():
            body = encoded(text, label)
            if body is None:
                continue
            wanted = unicodedata.normalize("NFC", decode_as(body, python_codec(label)))
            wrong = next(other for other in WRONG[number % 4 :] + WRONG if python_codec(other) != python_codec(label))
            for way, declared in zip(WAYS, ("", label, wrong), strict=True):
                data = page(body, declared)
                size += len(data)
                counts = right[language, label, way]
                counts["texts"] += 1
                for name, decode in libraries.items():
                    start = time.process_time()
                    try:
                        found = decode(data)
                    except (LookupError, UnicodeError):
                        found = ""
                    seconds[name] += time.process_time() - start
                    counts[name] += wanted in unicodedata.normalize("NFC", found)
    report(right, list(libraries), given.cells)
    print({name: f"{size / seconds[name] / 1e6:.2f} MB/s" for name in libraries})


def report(right: dict[tuple[str, str, str], Counter[str]], names: list[str], all_cells: bool) -> None:
    """Shares by way of declaring, and cells where another library is right more often."""
    for way in WAYS:
        rows = {key: counts for key, counts in right.items() if key[2] == way}
        total = sum(counts["texts"] for counts in rows.values())
        shares = {name: round(sum(counts[name] for counts in rows.values()) / total, 4) for name in names}
        print(f"{way}: {len(rows)} pairs of language and encoding, {total} texts, right: {shares}")
        for (language, label, _), counts in rows.items():
            if all_cells or any(counts[name] > counts[names[0]] for name in names):
                print(f"  {language} {label:14}", {name: f"{counts[name]}/{counts['texts']}" for name in names})


if __name__ == "__main__":
    main()
