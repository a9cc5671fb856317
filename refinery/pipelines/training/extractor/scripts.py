"""Pages in other scripts: what a page's features are where its language has no capitals, no spaces, or no lexicon.

Nearly all pages with gold are English, so a model learns from capitals, from spaces and from English words, and judges
menus and tickers of Russian, Chinese, Arabic or Japanese pages badly. A copy of a page keeps all markup, and each word
becomes one of a made-up language: letter by letter in alphabets, a few signs where words have no spaces, with the
punctuation that texts in the script have. The lexicon learns nothing from copies. Which blocks are main text is known
from the original.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from refinery.transforms.core.document import hash64

SHARE = 2  # one page in so many is copied
LATIN = "abcdefghijklmnopqrstuvwxyz"
# Tags, comments, character references; elements whose content is not text.
MARKUP = re.compile(
    r"<!--.*?-->|<(script|style|textarea|iframe|math|svg|xmp|noembed|template)\b.*?</\1\s*>|<[^>]*>|&#?\w{1,31};",
    re.DOTALL | re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-zÀ-ɏ]+(?:['’][a-z]+)?")
# Spaces beside a sign outside ASCII. Those at the ends of a piece stay, as between elements of a menu.
SPACE = re.compile(r"(?<=[^\x00-\x7f\s]) +(?=\S)|(?<=\S) +(?=[^\x00-\x7f\s])")
LETTERS_PER_SIGN = 3  # a Chinese word of two signs says what an English one of five or six letters does
STOPS = str.maketrans({".": "。", ",": "，", "!": "！", "?": "？", ":": "：", ";": "；", "(": "（", ")": "）"})


@dataclass(frozen=True)
class Script:
    """How a text looks: its letters (26, in the order of the Latin ones), or the first and number of its signs.

    capitals: of the letters, "" where there are none. stops: what becomes of punctuation. spaces: between words.
    """

    letters: str = ""
    capitals: str = ""
    signs: tuple[int, int] = (0, 0)
    stops: dict[int, str] | None = None
    spaces: bool = True


SCRIPTS = {
    "Cyrillic": Script("абцдефгхийклмнопярстувжыьз", "АБЦДЕФГХИЙКЛМНОПЯРСТУВЖЫЬЗ"),
    "Greek": Script("αβχδεφγηιξκλμνοπψρστυθωςζά", "ΑΒΧΔΕΦΓΗΙΞΚΛΜΝΟΠΨΡΣΤΥΘΩΣΖΆ"),
    "Arabic": Script("ابتثجحخدذرزسشصضطظعغفقكلمنه", stops=str.maketrans({",": "،", ";": "؛", "?": "؟"})),
    "Hebrew": Script("אבגדהוזחטיכלמנסעפצקרשתםןףך"),
    "Devanagari": Script("कखगघचछजझटठडढणतथदधनपफबभमयरल", stops=str.maketrans({".": "।"})),
    "Hangul": Script(signs=(0xAC00, 2_300)),
    "Han": Script(signs=(0x4E00, 3_000), stops=STOPS, spaces=False),
    "Kana": Script(signs=(0x3042, 80), stops=STOPS | {ord(","): "、"}, spaces=False),
    "Thai": Script("กขคงจฉชซญดตถทธนบปผพฟมยรลวส", stops=dict.fromkeys(map(ord, ".,;:"), ""), spaces=False),
}  # fmt: skip


def in_other_script(html: str, name: str) -> str | None:
    """The page as it might be in another script, chosen by `name`; None for a page that is not to be copied. Linear."""
    choice = hash64("script", name)
    if choice % SHARE:
        return None
    script = list(SCRIPTS.values())[choice // SHARE % len(SCRIPTS)]
    rewrite = rewriter(script)
    pieces, at = [], 0
    for found in MARKUP.finditer(html):
        pieces += [rewrite(html[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, rewrite(html[at:])])


def rewriter(script: Script) -> Callable[[str], str]:
    """What makes of a text without markup one in the script: each word always becomes the same one."""
    alphabet = script.letters + (script.capitals or script.letters)
    letters = str.maketrans(LATIN + LATIN.upper(), alphabet) if alphabet else {}
    first, count = script.signs

    def word(found: re.Match[str]) -> str:
        if letters:
            return found[0].translate(letters)
        size = -(-len(found[0]) // LETTERS_PER_SIGN)
        number = hash64("word", found[0].lower())
        return "".join(chr(first + (number >> 9 * place) % count) for place in range(min(size, 6)))

    def rewrite(text: str) -> str:
        if script.stops is not None:
            # Stops of a script without spaces have none behind them, either.
            text = text.translate(script.stops)
        text = WORD.sub(word, text)
        return text if script.spaces else SPACE.sub("", text)

    return rewrite
