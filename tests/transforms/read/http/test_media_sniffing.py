import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.read.http.media_sniffing import is_foreign, sniff

WORDS = b"Otters keep their favourite stone in a pouch under the arm, and eat with it on their bellies. " * 40


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!DOCTYPE html><p>", "html"),
        (b"\xef\xbb\xbf \r\n<HTML>", "html"),
        ("<html><p>Wort".encode("utf-16"), "html"),
        ("<html><p>Wort".encode("utf-16-be"), "html"),
        (b"<!-- saved --><p>x", "html"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">', "html"),
        (b'<?xml version="1.0"?><html xmlns="x">', "html"),
        (b'<?xml version="1.0"?><rss><channel>', ""),
        (b"<div>", "html"),
        (b"<a href='x'>", "html"),
        (b"<abbr>", "text"),
        (b"Words, plainly.\n", "text"),
        (b"%PDF-1.4\n", ""),
        (b"{\\rtf1", ""),
        (b"\x89PNG\r\n\x1a\n", ""),
        (b"GIF89a", ""),
        (b"Wo\0rds", ""),
    ],
)
def test_sniffing(body: bytes, kind: str) -> None:
    assert sniff(body) == kind


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def packed(kind: str) -> bytes:
    """WORDS in an archive that its library writes."""
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("words.txt", WORDS)
    else:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo("words.txt")
            entry.size = len(WORDS)
            tar.addfile(entry, io.BytesIO(WORDS))
    return buffer.getvalue()


FOREIGN = {
    "gzip": gzip.compress(WORDS),
    "zlib": zlib.compress(WORDS),
    "raw deflate": zlib.compress(b"".join(b"%x " % (at * at) for at in range(900)), wbits=-15),
    "zstd": zstandard.compress(WORDS),
    "brotli": brotli.compress(noise(3000)),
    "bzip2": bz2.compress(WORDS),
    "xz": lzma.compress(WORDS),
    "zip": packed("zip"),
    "tar": packed("tar"),
    "7z": b"7z\xbc\xaf\x27\x1c\0\4" + noise(300),
    "rar": b"Rar!\x1a\7\1\0" + noise(300),
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + noise(300),
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0" + noise(300),
    "gif": b"GIF89a\1\0\1\0\x80\0\0" + noise(30),
    "webp": b"RIFF\x10\2\0\0WEBPVP8 " + noise(300),
    "bmp": b"BM\x36\4\0\0\0\0\0\0\x36\4\0\0" + noise(300),
    "ico": b"\0\0\1\0\1\0\x10\x10" + noise(300),
    "tiff": b"II*\0\x08\0\0\0" + noise(300),
    "avif": b"\0\0\0\x20ftypavif\0\0\0\0" + noise(300),
    "mp4": b"\0\0\0\x18ftypisom\0\0\2\0" + noise(300),
    "mp3": b"ID3\3\0\0\0\0\0\x21" + noise(300),
    "ogg": b"OggS\0\2" + noise(300),
    "woff2": b"wOF2\0\1\0\0" + noise(300),
    "ttf": b"\0\1\0\0\0\x11\1\0" + noise(300),
    "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj <</Type /Catalog>> endobj\n" + WORDS,
    "pdf of ascii": b"%PDF-1.3\n1 0 obj\n" + WORDS,
    "pdf behind a blank line": b"\r\n%PDF-1.3\n1 0 obj\n" + WORDS,
    "pdf behind a mark": b"\xef\xbb\xbf%PDF-1.3\n1 0 obj\n" + WORDS,
    "postscript": b"%!PS-Adobe-3.0\n/Times-Roman findfont\n" + WORDS,
    "rtf": b"{\\rtf1\\ansi\\deff0 " + WORDS,
    "word": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + noise(300),
    "exe": b"MZ\x90\0\3\0\0\0" + noise(300),
    "elf": b"\x7fELF\2\1\1\0" + noise(300),
    "class": b"\xca\xfe\xba\xbe\0\0\0\x34" + noise(300),
    "wasm": b"\0asm\1\0\0\0" + noise(300),
    "sqlite": b"SQLite format 3\0" + noise(300),
    "swf": b"CWS\x09\x10\x10\0\0" + noise(300),
    "nothing known": noise(2000),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_no_text(name: str) -> None:
    assert is_foreign(FOREIGN[name])


RUSSIAN = "Выдры держат любимый камень под мышкой и едят с ним. " * 40
CHINESE = "海獭把最喜欢的石头放在腋下的口袋里，并用它在肚子上吃东西。" * 60
TEXTS = {
    "english": WORDS,
    "html": b"<!doctype html><html><p>" + WORDS,
    "russian utf-8": RUSSIAN.encode(),
    "russian koi8-r": RUSSIAN.encode("koi8-r"),
    "russian utf-16": RUSSIAN.encode("utf-16"),
    "russian utf-16le without a mark": RUSSIAN.encode("utf-16-le"),
    "russian utf-16be without a mark": RUSSIAN.encode("utf-16-be"),
    "russian utf-32": RUSSIAN.encode("utf-32"),
    "russian utf-32 without a mark": RUSSIAN.encode("utf-32-le"),
    "english utf-16le without a mark": WORDS.decode().encode("utf-16-le"),
    "chinese gb18030": CHINESE.encode("gb18030"),
    "chinese utf-16le without a mark": CHINESE.encode("utf-16-le"),
    "chinese utf-16be without a mark": CHINESE.encode("utf-16-be"),
    "japanese iso-2022-jp": ("ラッコはお気に入りの石を脇の下に入れています。" * 40).encode("iso-2022-jp"),
    "korean iso-2022-kr": ("해달은 좋아하는 돌을 겨드랑이 아래에 보관합니다 " * 40).encode("iso-2022-kr"),
    "chinese hz": CHINESE.encode("hz"),
    "some controls": WORDS.replace(b"pouch", b"po\x02uch"),
    "nul": b"Wo\0rds " + WORDS,
    "padded": b"Words. " * 300 + bytes(1000),
    "records of utf-8": "\x01".join(["naïve café"] * 200).encode(),
    "colours of a terminal": b"\x1b[31mred\x1b[0m and \x1b[32mgreen\x1b[0m " * 50,
    "short": b"\x01\x02!",
    "form feeds": b"Page.\x0c" * 100,
    "cut in a character": ("é" * 2047).encode() + b" \xc3\x01",
    "about formats": b"GIF89a is what a picture begins with; OTTO is a name, BMW a car, and PK a family. " + WORDS,
    "OTTO": b"OTTO and MZ went to RIFF and FORM. ID3 is a tag. FWS, CWS." + WORDS,
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_any_charset_are_text(name: str) -> None:
    assert not is_foreign(TEXTS[name])


@given(
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1), st.sampled_from(["utf-8", "utf-16", "cp1251"])
)
def test_no_text_without_controls_is_binary(text: str, charset: str) -> None:
    body = ("A: " + text).encode(charset, "replace")
    assert not is_foreign(body)
