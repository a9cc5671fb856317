"""Numbers that states and makers give: social security, national identity, tax, health; IMEI.

A number is taken where its check digits, its date of birth and its way of writing leave no doubt, else next to a word
that says what it is. One line of the tables below is one kind of number.

Sources: the Social Security Administration (areas 000, 666 and 900 to 999 are not given), IRS (ITIN), 3GPP TS 23.003
(IMEI); for each national number the check that its line names, as published by the issuing country and collected in
python-stdnum's documentation.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import refinery.transforms.redaction.pii_types.checks as checks
from refinery.transforms.redaction.pii_types.cues import IDENTITY_CUE, PHONE_CUE, says
from refinery.transforms.redaction.pii_types.payments import CARD_GROUPS, is_card
from refinery.transforms.redaction.pii_types.scan import (
    WORD_BYTES,
    Group,
    Run,
    before,
    compile_bytes,
    only_digits,
    stands_alone,
)

NumberKind = Literal["imei", "card", "ssn", "national_id"]
CUE = rb"(?:[^\w\n][^\n]{0,24})?$"


def _cue(words: bytes) -> bytes:
    """Words before a number; those of other scripts, where \\b knows no words, begin anywhere."""
    ascii_words = [word for word in words.split(b"|") if word[:2] != rb"\x"]
    others = [word for word in words.split(b"|") if word[:2] == rb"\x"]
    return rb"(?i)(?:\b(?:" + b"|".join(ascii_words) + rb")" + b"".join(b"|" + word for word in others) + rb")" + CUE


GENERIC_CUE = (
    rb"national (?:id|identity|insurance|identification)\w*|identity (?:card|number|code|no)|id (?:card"
    rb"|number|code|no)|identification (?:number|code|no)"
    rb"|personal (?:code|number|id\w*)|tax (?:id\w*|number|no|file)|tin|taxpayer\w*|social (?:security"
    rb"|insurance)\w*|ssn|citizen\w* (?:id|number|card)"
)


class Numeric(NamedTuple):
    """A number of digits alone. groups: how it is written, sizes of its groups; bare: whether the checks alone do."""

    groups: tuple[tuple[int, ...], ...]
    check: Callable[[bytes], bool]
    bare: bool
    cue: bytes = rb""


# Sizes of groups with a separator between them; a single size is a number in one piece.
NUMERIC = (
    Numeric(
        ((3, 4, 4, 2),), checks.switzerland, True, rb"ahv\w*|avs|sozialversicherung\w*"
    ),  # 756.1234.5678.97: EAN-13
    Numeric(((3, 3, 3, 2),), checks.brazil, True, rb"cpf"),  # 529.982.247-25: two digits modulo 11
    Numeric(((11,),), checks.brazil, False, rb"cpf"),
    Numeric(((11,),), checks.turkey, True, rb"tckn|tc|kimlik\w*"),  # two check digits
    Numeric(
        ((11,), (6, 5)), checks.norway, True, rb"f\xc3\xb8dselsnummer|personnummer|fnr"
    ),  # date, two digits modulo 11
    Numeric(((11,),), checks.poland, True, rb"pesel"),  # date, digit modulo 10
    Numeric(((11,),), checks.germany_tax, False, rb"steuer\w*|idnr|st\.?-?nr|tin"),  # ISO 7064 modulo 11, 10
    Numeric(((6, 3, 2), (2, 2, 2, 3, 2)), checks.belgium, True, rb"rijksregister\w*|registre national"),  # modulo 97
    Numeric(((11,),), checks.belgium, False, rb"rijksregister\w*|registre national"),
    Numeric(((6, 7),), checks.korea, True, rb"rrn|frn"),  # 960121-1021413: date
    Numeric(((13,),), checks.korea, False, rb"rrn|frn"),
    Numeric(((13,),), checks.south_africa, True, rb"sa id|rsa id"),  # date, citizenship, Luhn
    Numeric(((1, 4, 5, 2, 1),), checks.thailand, True),  # digit modulo 11
    Numeric(
        ((13,),),
        checks.thailand,
        False,
        rb"thai\w*|\xe0\xb8\x9b\xe0\xb8\xa3\xe0\xb8\xb0\xe0\xb8\x8a\xe0\xb8\xb2\xe0\xb8\x8a\xe0\xb8\x99",
    ),
    Numeric(((8, 4), (6, 4)), checks.sweden, True, rb"pnr|personnummer"),  # date, Luhn
    Numeric(((12,),), checks.sweden_in_one, True),
    Numeric(((12,), (10,)), checks.sweden, False, rb"pnr|personnummer|swedish"),
    Numeric(((6, 4),), checks.denmark, False, rb"cpr\w*"),  # date
    Numeric(
        ((13,), (1, 2, 2, 2, 3, 3, 2), (15,)), checks.france, True, rb"nir|s\xc3\xa9curit\xc3\xa9 sociale|insee"
    ),  # modulo 97
    Numeric(((4, 4, 4),), checks.india, True, rb"aadhaar|aadhar|uidai"),  # Verhoeff
    Numeric(((12,),), checks.india, False, rb"aadhaar|aadhar|uidai"),
    Numeric(((3, 3, 3),), checks.canada, False, rb"sin|nas|social insurance\w*|assurance sociale"),  # Luhn
    Numeric(((9,),), checks.canada, False, rb"sin|nas|social insurance\w*|assurance sociale"),
    Numeric(((3, 3, 3), (9,), (8,)), checks.australia_tax, False, rb"tfn|tax file"),
    Numeric(((4, 5, 1), (10,), (4, 5, 1, 1)), checks.australia_medicare, False, rb"medicare"),
    Numeric(((3, 3, 4), (10,)), checks.britain_health, False, rb"nhs|health service"),  # modulo 11
    Numeric(((9,), (4, 2, 3)), checks.netherlands, False, rb"bsn|burgerservicenummer|sofi"),  # modulo 11
    Numeric(((9,), (3, 3, 3)), checks.portugal, False, rb"nif|contribuinte"),  # modulo 11
    Numeric(((3, 2, 4),), checks.itin, True, rb"itin"),
    Numeric(
        ((9,), (10,), (11,), (12,)),
        checks.varied,
        False,
        rb"nin|bvn|driv\w+ licen[cs]e|licen[cs]e (?:number|no)|passport|rvnr|tin",
    ),
    Numeric(((3, 3, 3, 3), (3, 3, 3)), checks.varied, False, rb"tin"),
)


class Lettered(NamedTuple):
    """A number with letters in it: its form, its check on the compact number, and what else the form needs."""

    form: bytes
    check: Callable[[bytes], bool]
    bare: bool
    cue: bytes = rb""


PASSPORT = (
    rb"passport\w*|pasaporte|passeport|passaporto|reisepass\w*|\xec\x97\xac\xea\xb6\x8c\w*"
    rb"|\xec\x97\xac\xea\xb6\x8c[\x80-\xff]*"
)
LETTERED = (
    Lettered(rb"[0-9]{7,8}-?[A-Za-z]", checks.spain, True, rb"dni|nif"),  # letter by the remainder of 23
    Lettered(rb"[XYZxyz]-?[0-9]{7}-?[A-Za-z]", checks.spain, True, rb"nie"),
    Lettered(rb"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]", checks.finland, True, rb"hetu"),  # date, remainder of 31
    Lettered(
        rb"(?i:[A-Z]{6}[0-9]{2}[A-EHLMPR-T][0-9]{2}[A-Z][0-9]{3}[A-Z])", checks.italy, True, rb"codice fiscale|cf"
    ),
    Lettered(rb"[STFGMstfgm][0-9]{7}[A-Za-z]", checks.singapore, True, rb"nric|fin"),
    Lettered(rb"[1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", checks.china, True),  # date, ISO 7064 modulo 11-2
    Lettered(
        rb"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", checks.britain_insurance, True
    ),
    Lettered(rb"[A-Z]{3}[ABCFGHLJPT][A-Z][0-9]{4}[A-Z]", checks.always, False, rb"pan|income tax|permanent account"),
    Lettered(
        rb"[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]-?[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]-?[AC-HJKMNP-RT-Y]{2}[0-9]{2}",
        checks.always,
        True,
    ),
    Lettered(
        rb"[A-Z][0-9]{9}", checks.germany_health, True, rb"kvnr|krankenversicher\w*|egk\w*"
    ),  # Luhn, letter as digits
    Lettered(
        rb"[0-9]{8}[A-Z][0-9]{3}", checks.germany_pension, True, rb"rvnr|sozialversicherung\w*|rentenversicherung\w*"
    ),
    Lettered(rb"[A-Z][A-Z9]{4}[0-9]{6}[A-Z9]{2}[0-9][A-Z]{2}", checks.britain_driver, True),
    Lettered(
        rb"[A-Z]{2}[0-9]{7}[A-Z]|[A-Z][0-9]{7,14}",
        checks.varied,
        False,
        rb"driv\w+ licen[cs]e|licen[cs]e (?:number|no)|patente",
    ),
    Lettered(
        rb"[A-Za-z]{1,3}[0-9]{6,8}|[A-Za-z][0-9]{3}[A-Za-z][0-9]{4}|[CFGHJK][0-9CFGHJ-NPRTV-Z]{8}",
        checks.varied,
        False,
        PASSPORT,
    ),
)
LETTERED_HINT = rb"|".join(
    (
        rb"[0-9]{7}-?[A-Za-z]",
        rb"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]",
        rb"[A-Za-z]{6}[0-9]{2}[A-Za-z][0-9]{2}",
        rb"[A-Za-z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2}",
        rb"[A-Z]{5}[0-9]{4}[A-Z]",
        rb"[A-Z9]{3}[0-9]{6}[A-Z9]{2}[0-9]",
        rb"[CFGHJK][0-9CFGHJ-NPRTV-Z]{8}",
        rb"[1-9][A-Z][A-Z0-9][0-9]-?[A-Z][A-Z0-9][0-9]-?[A-Z]{2}",
        rb"[A-Za-z][0-9]{3}[A-Za-z][0-9]{4}",
    )
)
NATIONAL_CUE = compile_bytes(
    _cue(rb"|".join(dict.fromkeys((GENERIC_CUE, *(line.cue for line in (*NUMERIC, *LETTERED) if line.cue)))))
)
"""any word for a national number"""
SSN_CUE = compile_bytes(_cue(rb"ssns?|social[- ]security\w*|soc\.? sec\w*|social"))
IMEI_CUE = compile_bytes(_cue(rb"imei\w*|imeisv"))
IMEI_GROUPS = frozenset(((2, 6, 6, 1), (8, 6, 1), (6, 2, 6, 1), (15,)))
SSN_GROUPS = frozenset(((3, 2, 4), (9,)))
MAX_GROUPS = 7  # of the longest way of writing


def _by_groups() -> dict[tuple[int, ...], tuple[tuple[Numeric, Any], ...]]:
    found: dict[tuple[int, ...], tuple[tuple[Numeric, Any], ...]] = {}
    for line in NUMERIC:
        cue = compile_bytes(_cue(rb"|".join(filter(None, (GENERIC_CUE, line.cue)))))
        for groups in line.groups:
            found[groups] = (*found.get(groups, ()), (line, cue))
    return found


BY_GROUPS = _by_groups()
WRITTEN = frozenset((*BY_GROUPS, *CARD_GROUPS, *IMEI_GROUPS, *SSN_GROUPS))
LETTERED_FORMS = tuple(
    (line, compile_bytes(line.form), compile_bytes(_cue(rb"|".join(filter(None, (GENERIC_CUE, line.cue))))))
    for line in LETTERED
)
LETTERED_ANY = compile_bytes(rb"\b(?:" + rb"|".join(line.form for line in LETTERED) + rb")\b")


def numbers(data: bytes, runs: Iterable[Run], kinds: frozenset[NumberKind]) -> Iterator[tuple[int, int, NumberKind]]:
    """Cards, SSNs, IMEIs and national numbers among stretches of digits, those of `kinds`.

    Linear: from each group at most MAX_GROUPS are looked at, and a way of writing is one look-up.
    """
    for run in runs:
        at = 0
        while at < len(run.groups):
            found = _longest(data, run.groups[at : at + MAX_GROUPS], kinds)
            if found is None:
                at += 1
                continue
            count, kind = found
            yield run.groups[at].start, run.groups[at + count - 1].end, kind
            at += count


def _longest(data: bytes, groups: list[Group], kinds: frozenset[NumberKind]) -> tuple[int, NumberKind] | None:
    """How many groups make a number, and of which kind."""
    sizes = tuple([end - start for start, end in groups])
    for count in range(len(groups), 0, -1):
        written = sizes[:count]
        if written not in WRITTEN:
            continue
        start, end = groups[0].start, groups[count - 1].end
        if not stands_alone(data, start, end) or not _is_even(data, groups[:count]):
            continue
        kind = _kind(data, start, end, written, kinds)
        if kind:
            return count, kind
    return None


def _is_even(data: bytes, groups: list[Group]) -> bool:
    """Whether single separators stand between the groups: a row of columns is not a number."""
    return all(len(data[a.end : b.start].decode(errors="replace")) == 1 for a, b in pairwise(groups))


def _kind(
    data: bytes, start: int, end: int, written: tuple[int, ...], kinds: frozenset[NumberKind]
) -> NumberKind | None:
    digits, left = only_digits(data[start:end]), before(data, start)
    if "imei" in kinds and written in IMEI_GROUPS and checks.luhn_varied(digits) and IMEI_CUE.search(left):
        return "imei"
    if "card" in kinds and written in CARD_GROUPS and is_card(data, start, end, digits):
        return "card"
    if "ssn" in kinds and written in SSN_GROUPS and checks.ssn(digits):
        marks = data[start + 3 : start + 4] + data[end - 5 : end - 4]
        if (len(written) == 3 and marks in (b"--", b"  ")) or SSN_CUE.search(left):
            return "ssn"
    if "national_id" in kinds:
        for line, cue in BY_GROUPS.get(written, ()):
            if not line.check(digits):
                continue
            bare = line.bare and not says(PHONE_CUE, data, start)
            if bare or cue.search(left) or says(IDENTITY_CUE, data, start):
                return "national_id"
    return None


def lettered(data: bytes) -> Iterator[tuple[int, int]]:
    """National numbers with letters in them. Linear."""
    for match in LETTERED_ANY.finditer(data):
        start, end = match.span()
        if start and data[start - 1] in b"-./+=&%#$@_":
            continue
        if end + 1 < len(data) and data[end] in b"-/=@+" and data[end + 1] in WORD_BYTES:
            continue
        value = data[start:end]
        compact = value.translate(None, b" -").upper() if value[6:7] not in b"+-" or not value[:6].isdigit() else value
        for line, form, cue in LETTERED_FORMS:
            if not form.fullmatch(value) or not line.check(compact):
                continue
            if line.bare or cue.search(before(data, start)) or says(IDENTITY_CUE, data, start):
                yield start, end
                break
