"""Addresses and names of licences of pages, as identifiers of SPDX (spdx.org/licenses).

Those of Creative Commons are read by their parts, so every port to a jurisdiction has an identifier, also where
SPDX lists none: CC-BY-NC-SA-2.0-DE. Without a version in the address there is none in the identifier.
"""

import re

OTHER = "LicenseRef-other"  # a page declares terms, and they are none that is known here
MAX_VALUE = 2000  # characters of a value that are looked at

_CC = re.compile(
    r"creativecommons\.org(?::\d+)?/(?P<kind>licen[sc]es|publicdomain|l|p)/+"
    r"(?P<name>(?:by|nc|nd|sa|zero|mark|publicdomain|certification)(?:-(?:by|nc|nd|sa))*)"
    r"(?![\w+-])(?:/+(?P<version>\d\.\d))?(?:/+(?P<port>[a-z]{2}|igo|scotland)(?![\w.-]))?",
    re.IGNORECASE,
)
_NAMES = {  # parts in any order -> name
    frozenset(name.split("-")): name.upper()
    for name in ("by", "by-sa", "by-nc", "by-nd", "by-nc-sa", "by-nc-nd", "sa", "nc", "nd", "nc-sa", "nd-nc")
}
_OTHERS = (
    (r"gnu\.org/(?:licenses|copyleft)/(?:old-licenses/)?fdl-?1\.([1-3])", "GFDL-1.{}"),
    (r"gnu\.org/(?:licenses|copyleft)/fdl", "GFDL"),
    (r"opensource\.org/licen[sc]es?/mit(?!\w)", "MIT"),
    (r"apache\.org/licen[sc]es/license-2\.0", "Apache-2.0"),
    (r"nationalarchives\.gov\.uk/doc/open-government-licence(?:/version/([1-3]))?", "OGL-UK-{}.0"),
    (r"govdata\.de/dl-de/by-2-0", "DL-DE-BY-2.0"),
    (r"govdata\.de/dl-de/zero-2-0", "DL-DE-ZERO-2.0"),
    (r"opendatacommons\.org/licen[sc]es/odbl", "ODbL-1.0"),
    (r"opendatacommons\.org/licen[sc]es/by", "ODC-By-1.0"),
    (r"opendatacommons\.org/licen[sc]es/pddl", "PDDL-1.0"),
)
_OTHER_ADDRESSES = tuple((re.compile(pattern, re.IGNORECASE), name) for pattern, name in _OTHERS)
_SHORT = re.compile(r"\bcc[\s_-]{0,3}(by(?:[\s_-]{1,3}(?:nc|nd|sa)\b){0,2})\b[\s_-]{0,3}(\d\.\d)?", re.IGNORECASE)
_ZERO = re.compile(r"\bcc[\s_-]?0\b|\bcc[\s_-]zero\b", re.IGNORECASE)
_TERMS = r"non-?commercial|no-?deriv(?:ative)?s?|share-?alike"
_LONG = re.compile(
    rf"creative commons (?:- )?attribution((?:[\s/-]{{1,3}}(?:{_TERMS})(?: works)?){{0,2}})"
    r"(?:[^.\d]{0,40}?(\d\.\d)(?!\d))?",
    re.IGNORECASE,
)


def license_of_address(address: str) -> str:
    """The identifier of the licence at an address, also where an archive's address is before it; "" for none known.

    >>> license_of_address("http://creativecommons.org/licenses/by-nc-sa/3.0/de/deed.en")
    'CC-BY-NC-SA-3.0-DE'
    """
    address = address[:MAX_VALUE]
    if found := _CC.search(address):
        name, version, port = found["name"].lower(), found["version"], found["port"]
        if name == "zero":
            return "CC0-1.0"
        if name == "mark":
            return "CC-PDM-1.0"
        if name in ("publicdomain", "certification"):
            return "CC-PDDC"
        known = _NAMES.get(frozenset(name.split("-")))
        return _joined(known, version, "" if version == "4.0" else port) if known else ""
    for pattern, name in _OTHER_ADDRESSES:
        if found := pattern.search(address):
            return name.format(found[1] or 3) if found.groups() else name
    return ""


def license_of_text(text: str) -> str:
    """The identifier of the one Creative Commons licence that a text names, by address or name; "" for none or several.

    >>> license_of_text("This work: CC BY-SA 4.0"), license_of_text("CC BY or CC0")
    ('CC-BY-SA-4.0', '')
    """
    text = text[:MAX_VALUE]
    found = {license_of_address(match[0]) for match in _CC.finditer(text)}
    if not found:
        found |= {_of_parts(match[1], match[2]) for match in _SHORT.finditer(text)}
        found |= {_of_parts("by" + _parts_of(match[1]), match[2]) for match in _LONG.finditer(text)}
        found |= {"CC0-1.0"} if _ZERO.search(text) else set()
    found.discard("")
    return found.pop() if len(found) == 1 else ""


def _of_parts(name: str, version: str | None) -> str:
    known = _NAMES.get(frozenset(re.split(r"[\s_-]+", name.lower())))
    return _joined(known, version, None) if known else ""


def _parts_of(words: str) -> str:
    small = re.sub(r"[\s-]", "", words.lower())
    return "".join(
        f"-{short}"
        for word, short in (("noncommercial", "nc"), ("noderiv", "nd"), ("sharealike", "sa"))
        if word in small
    )


def _joined(name: str, version: str | None, port: str | None) -> str:
    return "-".join(part for part in ("CC", name, version or "", (port or "").upper() if version else "") if part)
