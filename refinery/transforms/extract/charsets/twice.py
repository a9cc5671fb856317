"""Text that was encoded twice: UTF-8 taken for another encoding and encoded again, "Weâ€™re" for "We’re".

The repair is `ftfy.fix_encoding` (Speer, "ftfy", 2019), which undoes such steps where the result is less strange by
its measure, and changes nothing else. `ftfy.fix_text` is another matter: it rewrites quotation marks, ligatures and
full-width forms, which are right. Each paragraph is repaired alone, since pages quote what others wrote.

ftfy takes a second for 8 to 30 MB outside ASCII, so only paragraphs go to it where a kernel finds characters together
that stand for bytes of one UTF-8 character: a control from 80 to 9F; under windows-1252 a lead byte and what must
follow; under windows-1251 two such pairs, as "Р°" alone is common Russian; under Mac Roman, code page 437 and
windows-1250 the leads that hardly any text has.
"""

import re
from functools import cache

from refinery.transforms.native import mojibake

_CONTROL = re.compile("[\x80-\x9f]")
_SCRIPT = re.compile("<(?:script|style)", re.IGNORECASE)
_SCRIPT_END = re.compile("</(?:script|style)", re.IGNORECASE)
_END = re.compile("[<>\n]")
_QUOTED = re.compile("[\"'`“‘„«(]([^\x00-\x7f]{2,12})(?=[\"'`”’“»)])")
_NEXT, _LEAD_2, _LEAD_3, _LEAD_4 = (1 << bit for bit in range(4))
_CYRILLIC_NEXT, _CYRILLIC_LEAD, _OTHER_LEAD, _OTHER_NEXT = (1 << bit for bit in range(4, 8))


def repaired(text: str) -> str:
    """`text` with paragraphs that were encoded twice repaired; itself where there are none. Linear."""
    if text.isascii() or not mojibake.suspect(text, _classes()):
        return text
    return "\n".join(map(_repaired_part, text.split("\n")))


def repaired_page(page: str | bytes) -> str | bytes:
    """An HTML page, as UTF-8 or text, repaired outside scripts where its texts and tags hold controls from 80 to 9F.

    Parsers drop these, after which nothing tells the rest of such text from letters. What needs none of them stays in
    the text of the page, and `repaired` finds it there.
    """
    if isinstance(page, bytes):
        if not mojibake.controls(page):
            return page
        page = page.decode("utf-8", "replace")
    elif not _CONTROL.search(page):
        return page
    parts: list[str] = []
    done = 0
    while script := _SCRIPT.search(page, done):
        end = _SCRIPT_END.search(page, script.end())
        stop = end.start() if end else len(page)
        parts += _repaired_texts(page[done : script.start()]), page[script.start() : stop]
        done = stop
    return "".join([*parts, _repaired_texts(page[done:])]).encode("utf-8", "ignore")


def _repaired_texts(markup: str) -> str:
    """Markup with its texts that hold a control repaired."""
    parts: list[str] = []
    done = 0
    while control := _CONTROL.search(markup, done):
        start = max(done, 1 + max(markup.rfind(sign, done, control.start()) for sign in "<>\n"))
        end = _END.search(markup, control.end())
        stop = end.start() if end else len(markup)
        parts += markup[done:start], _repaired_part(markup[start:stop])
        done = stop
    return "".join([*parts, markup[done:]])


def _repaired_part(part: str) -> str:
    """A paragraph, repaired; but one that quotes such signs talks of them: `"Ã¤" instead of "ä"`."""
    if part.isascii() or not mojibake.suspect(part, _classes()):
        return part
    if any(mojibake.suspect(quoted[1], _classes()) for quoted in _QUOTED.finditer(part)):
        return part
    import ftfy  # 40 ms, which most workers never need

    return ftfy.fix_encoding(part)


@cache
def _classes() -> bytes:
    """What each character of the first plane may stand for: bits of `mojibake.c`."""
    classes = bytearray(1 << 16)

    def mark(codec: str, first: int, last: int, bit: int) -> None:
        for byte in range(first, last + 1):
            for sign in {bytes([byte]).decode(codec, "ignore"), chr(byte) if codec == "cp1252" else ""}:
                if sign:
                    classes[ord(sign)] |= bit

    mark("cp1252", 0x80, 0xBF, _NEXT)
    mark("cp1252", 0xC2, 0xDF, _LEAD_2)
    mark("cp1252", 0xE0, 0xEF, _LEAD_3)
    mark("cp1252", 0xF0, 0xF4, _LEAD_4)
    mark("cp1251", 0x80, 0xBF, _CYRILLIC_NEXT)
    mark("cp1251", 0xD0, 0xD1, _CYRILLIC_LEAD)
    for lead in "√├Γ╬╨╤ĂÎ":
        classes[ord(lead)] |= _OTHER_LEAD
    classes[ord("‚")] |= _OTHER_LEAD  # Mac Roman's E2, which leads ’ and “
    classes[ord("в")] |= _OTHER_LEAD  # windows-1251's E2, before its 80
    classes[ord("Ђ")] |= _OTHER_NEXT
    mark("mac-roman", 0x80, 0xBF, _OTHER_NEXT)
    mark("cp437", 0x80, 0xBF, _OTHER_NEXT)
    for sign in "©¨¦§¤±¶´Ľľźşš™":
        classes[ord(sign)] |= _OTHER_NEXT
    return bytes(classes)
