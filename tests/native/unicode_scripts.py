"""Which characters belong to scripts written without spaces, by Unicode's properties: what include/scripts.h lists."""

import regex

# Letters of line-breaking class SA (UAX #14), and the scripts of Chinese and Japanese.
SCRIPTS = (
    *("Ahom", "Khmer", "Lao", "Myanmar", "New_Tai_Lue", "Tai_Le", "Tai_Tham", "Tai_Viet", "Thai"),
    *("Han", "Hiragana", "Katakana"),
)
# Those that share a letter or mark with one of SCRIPTS (ScriptExtensions.txt).
NEIGHBOURS = ("Bopomofo", "Chakma", "Hangul", "Latin", "Tangut", "Yi")


def one_of(name: str, values: tuple[str, ...]) -> str:
    return "[" + "".join(rf"\p{{{name}={value}}}" for value in values) + "]"


OWN = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{N}}]&&{one_of('Script', SCRIPTS)}]", regex.V1)
SHARED = regex.compile(
    rf"[[\p{{L}}\p{{M}}]&&{one_of('Script', ('Common', 'Inherited'))}&&{one_of('Script_Extensions', SCRIPTS)}"
    rf"--{one_of('Script_Extensions', NEIGHBOURS)}]",
    regex.V1,
)


def is_unspaced(character: str) -> bool:
    """Whether the character is a letter, mark or number of one of SCRIPTS, or is shared by these alone."""
    return bool(OWN.match(character) or SHARED.match(character))
