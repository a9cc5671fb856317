"""Which encodings the pages of a language are in, and how common an encoding is on the web.

A language's encodings are the code pages that Microsoft, Apple and ISO made for it, of which the web has kept one or
two (W3Techs, "character encodings by content language"; the WHATWG Encoding Standard has these and no others). ISO
8859-10, -14 and -16 stand only with the languages that no earlier part can write, and Polish, which is found in -16.
"""

from functools import cache
from types import MappingProxyType

import numpy as np

from refinery.transforms.extract.charsets.letters import LANGUAGES, UNIT, Vector

UNUSUAL = 6 * UNIT  # a language in an encoding that its pages are not in
_WESTERN = "afr bre cat cym dan deu eus fao fin fra fry gla gle glg isl ita ltz nld nor oci por roh spa sqi swe"
_CENTRAL = "ces hrv hsb hun pol ron slk slv sqi srp"
_USUAL = {
    "cp1252": f"{_WESTERN} est",
    "iso8859-15": f"{_WESTERN} est",
    "mac-roman": _WESTERN,
    "cp1250": _CENTRAL,
    "iso8859-2": _CENTRAL,
    "iso8859-16": "pol ron",
    "cp1257": "est lav lit",
    "iso8859-13": "est lav lit",
    "iso8859-4": "est lav lit sme",
    "iso8859-10": "sme",
    "iso8859-3": "epo mlt tur",
    "iso8859-14": "bre cym gla gle",
    "cp1251": "bel bul mkd rus srp ukr",
    "iso8859-5": "bel bul mkd rus srp ukr",
    "koi8-r": "bul rus",
    "koi8-u": "bel ukr",
    "cp866": "bul rus",
    "mac-cyrillic": "bul rus ukr",
    "cp1253": "ell",
    "iso8859-7": "ell",
    "cp1254": "tur",
    "cp1255": "heb yid",
    "iso8859-8": "heb yid",
    "cp1256": "ara fas urd",
    "iso8859-6": "ara",
    "cp874": "tha",
    "cp1258": "vie",
    "cp949": "kor",
    "cp932": "jpn",
    "euc_jp": "jpn",
    "iso2022_jp": "jpn",
    "gb18030": "zho",
    "big5hkscs": "zho",
}
_ANYWHERE = "eng ind lat swa"  # in ASCII, beside signs that every code page has
# The logarithm of how common an encoding is on the web (W3Techs' ranks); 0 for the most common of a language.
PRIOR = MappingProxyType(
    {
        **dict.fromkeys(["cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "koi8-r"], -1),
        **dict.fromkeys(["big5hkscs", "cp949", "euc_jp"], -1),
        **dict.fromkeys(["iso8859-2", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-15", "koi8-u"], -2),
        **dict.fromkeys(["cp866", "mac-roman", "mac-cyrillic", "iso8859-13"], -3),
        **dict.fromkeys(["iso8859-3", "iso8859-4", "iso8859-16"], -4),
        **dict.fromkeys(["iso8859-10", "iso8859-14"], -6),
    }
)


@cache
def usage(name: str) -> Vector:
    """The logarithm of how common an encoding is in each of LANGUAGES, in 1/UNIT, no constant subtracted. UTF-8 is of
    no language."""
    usual = (*_USUAL.get(name, "").split(), *_ANYWHERE.split())
    unusual = [0 if name == "utf-8" or language in usual else UNUSUAL for language in LANGUAGES]
    return UNIT * PRIOR.get(name, 0) - np.array(unusual, np.int32)
