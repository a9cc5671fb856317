"""Check digits and dates of numbers that states give; digits (and letters in upper case) without separators.

Each function says whether a number of its country can have been given. Constant time.
"""

from datetime import date

from refinery.transforms.redaction.pii_types.scan import luhn

# The dihedral group D5 and the permutation that Verhoeff's check digit is made of (Verhoeff 1969).
DIHEDRAL = (
    b"0123456789", b"1234067895", b"2340178956", b"3401289567", b"4012395678",
    b"5987604321", b"6598710432", b"7659821043", b"8765932104", b"9876543210",
)  # fmt: skip
PERMUTED = (
    b"0123456789", b"1576283094", b"5803796142", b"8916043527",
    b"9453126870", b"4286573901", b"2793806415", b"7046913258",
)  # fmt: skip


def _weighted(digits: bytes, weights: tuple[int, ...]) -> int:
    return sum((byte - 48) * weight for byte, weight in zip(digits, weights, strict=False))


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _is_short_date(two_years: bytes, month: int, day: int) -> bool:
    """A date whose century is not known: some year has it (29 February: a leap year)."""
    return _is_date(2000 + int(two_years), month, day) or _is_date(1900 + int(two_years), month, day)


def always(number: bytes) -> bool:
    """The form is all there is."""
    return True


def varied(number: bytes) -> bool:
    """At least three different digits or letters: no row of zeros, no filler."""
    return len(set(number)) >= 3


def luhn_varied(digits: bytes) -> bool:
    """Luhn's digit, and no filler."""
    return len(set(digits)) >= 3 and luhn(digits)


def ssn(digits: bytes) -> bool:
    """Social security number, United States: no area 000, 666 or 9xx, group 00, serial 0000, nor 123456789."""
    return (
        digits[:3] not in (b"000", b"666")
        and digits[:1] != b"9"
        and digits[3:5] != b"00"
        and digits[5:] != b"0000"
        and digits != b"123456789"
    )


def itin(digits: bytes) -> bool:
    """Individual taxpayer number, United States: 9xx with a group of 50 to 65, 70 to 88, 90 to 92 or 94 to 99."""
    group = int(digits[3:5])
    return digits[:1] == b"9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)


def switzerland(digits: bytes) -> bool:
    """AHV number: 756 and the check digit of EAN-13."""
    return digits[:3] == b"756" and _weighted(digits, (1, 3) * 6 + (1,)) % 10 == 0


def brazil(digits: bytes) -> bool:
    """CPF: two check digits modulo 11."""
    if len(set(digits)) == 1:
        return False
    first = _weighted(digits, tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = _weighted(digits, tuple(range(11, 1, -1))) * 10 % 11 % 10
    return first == digits[9] - 48 and second == digits[10] - 48


def turkey(digits: bytes) -> bool:
    """TCKN: two check digits modulo 10; no leading zero."""
    numbers = [byte - 48 for byte in digits]
    odd, even = sum(numbers[0:9:2]), sum(numbers[1:8:2])
    return numbers[0] != 0 and (7 * odd - even) % 10 == numbers[9] and sum(numbers[:10]) % 10 == numbers[10]


def norway(digits: bytes) -> bool:
    """Birth number: date, two check digits modulo 11."""
    day, month = int(digits[:2]), int(digits[2:4])
    if not _is_short_date(digits[4:6], month, day - 40 if day > 40 else day):
        return False
    return (
        _weighted(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
        and _weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
    )


def poland(digits: bytes) -> bool:
    """PESEL: date with the century in the month (80: 1800, 20: 2000, 40: 2100, 60: 2200), check digit modulo 10."""
    century = {8: 1800, 0: 1900, 2: 2000, 4: 2100, 6: 2200}[int(digits[2:3]) // 2 * 2]
    return (
        _is_date(century + int(digits[:2]), int(digits[2:4]) % 20, int(digits[4:6]))
        and _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0
    )


def germany_tax(digits: bytes) -> bool:
    """Tax identification number: ISO 7064 modulo 11, 10; no leading zero, one digit two or three times."""
    if digits[:1] == b"0" or not 8 <= len(set(digits[:10])) <= 9:
        return False
    product = 10
    for byte in digits[:10]:
        total = (byte - 48 + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == digits[10] - 48


def belgium(digits: bytes) -> bool:
    """National register number: date, 97 minus the remainder."""
    if not (int(digits[2:4]) <= 12 and 0 < int(digits[4:6]) <= 31):
        return False
    check = int(digits[9:])
    return check in (97 - int(digits[:9]) % 97, 97 - int(b"2" + digits[:9]) % 97)


def korea(digits: bytes) -> bool:
    """Resident or foreigner registration number: date, sex and century; no check digit since October 2020."""
    return _is_short_date(digits[:2], int(digits[2:4]), int(digits[4:6])) and digits[6:7] in b"12345678"


def south_africa(digits: bytes) -> bool:
    """Identity number: date, citizenship 0 to 2, Luhn."""
    return (
        _is_short_date(digits[:2], int(digits[2:4]), int(digits[4:6]))
        and digits[10:11] in b"012"
        and digits[11:12] in b"89"
        and luhn(digits)
    )


def thailand(digits: bytes) -> bool:
    """Identity number: digit modulo 11."""
    return digits[:1] in b"12345678" and (11 - _weighted(digits, tuple(range(13, 1, -1))) % 11) % 10 == digits[12] - 48


def sweden(digits: bytes) -> bool:
    """Personal number: date (day plus 60: coordination number), Luhn over the last ten."""
    last = digits[-10:]
    day = int(last[4:6])
    years = (int(digits[:4]),) if len(digits) == 12 else (1900 + int(last[:2]), 2000 + int(last[:2]))
    if len(digits) == 12 and digits[:2] not in (b"18", b"19", b"20"):
        return False
    return any(_is_date(year, int(last[2:4]), day - 60 if day > 60 else day) for year in years) and luhn(last)


def sweden_in_one(digits: bytes) -> bool:
    """The same in twelve digits that are not a time: 201109252385 has no 85th minute."""
    return sweden(digits) and (int(digits[8:10]) > 23 or int(digits[10:]) > 59)


def denmark(digits: bytes) -> bool:
    """CPR number: date; its modulo 11 is no longer kept."""
    return _is_short_date(digits[4:6], int(digits[2:4]), int(digits[:2]))


def france(digits: bytes) -> bool:
    """NIR: sex, month, 97 minus the remainder. (Corsica's letters are left out.)"""
    if len(digits) != 15:
        return False
    return digits[:1] in b"12" and 1 <= int(digits[3:5]) <= 42 and 97 - int(digits[:13]) % 97 == int(digits[13:])


def india(digits: bytes) -> bool:
    """Aadhaar: Verhoeff's check digit; no leading 0 or 1."""
    if digits[:1] in b"01" or len(set(digits)) < 3:
        return False
    check = 0
    for i, byte in enumerate(reversed(digits)):
        check = DIHEDRAL[check][PERMUTED[i % 8][byte - 48] - 48] - 48
    return check == 0


def canada(digits: bytes) -> bool:
    """SIN: Luhn; no leading 0 or 8."""
    return digits[:1] not in b"08" and luhn(digits)


def australia_tax(digits: bytes) -> bool:
    """TFN: weighted sum modulo 11."""
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10) if len(digits) == 9 else (10, 7, 8, 4, 6, 3, 5, 1)
    return _weighted(digits, weights) % 11 == 0


def australia_medicare(digits: bytes) -> bool:
    """Medicare number: first digit 2 to 6, check digit modulo 10 in the ninth place."""
    return digits[:1] in b"23456" and _weighted(digits[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == digits[8] - 48


def britain_health(digits: bytes) -> bool:
    """NHS number: digit modulo 11."""
    return _weighted(digits, tuple(range(10, 0, -1))) % 11 == 0 and len(set(digits)) > 1


def netherlands(digits: bytes) -> bool:
    """BSN: weighted sum modulo 11, the last with -1."""
    return _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and len(set(digits)) > 1


def portugal(digits: bytes) -> bool:
    """NIF: digit modulo 11."""
    check = 11 - _weighted(digits[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if check >= 10 else check) == digits[8] - 48


def spain(number: bytes) -> bool:
    """DNI and NIE: the letter by the remainder of 23. L, F, D and E behind digits are also suffixes of C's literals."""
    body, letter = number[:-1], number[-1:]
    foreign = body[:1] in (b"X", b"Y", b"Z")
    value = int(bytes([48 + b"XYZ".index(body[:1])]) + body[1:]) if foreign else int(body)
    if not foreign and letter in b"LFDE":
        return False
    return b"TRWAGMYFPDXBNJZSQVHLCKE"[value % 23 : value % 23 + 1] == letter


def finland(number: bytes) -> bool:
    """Personal identity code: date, sign of the century, character by the remainder of 31."""
    if not _is_short_date(number[4:6], int(number[2:4]), int(number[:2])):
        return False
    remainder = int(number[:6] + number[7:10]) % 31
    return b"0123456789ABCDEFHJKLMNPRSTUVWXY"[remainder : remainder + 1] == number[10:11]


# What a character counts in an odd place: the digits, and the letters A to Z.
ODD_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
ODD_LETTERS = (*ODD_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def italy(number: bytes) -> bool:
    """Codice fiscale: a letter by the remainder of 26; odd places by the table of the decree of 23 December 1976."""
    text = number.decode()
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in text[1:15:2])
    odd = sum(ODD_DIGITS[int(char)] if char.isdigit() else ODD_LETTERS[ord(char) - 65] for char in text[0:15:2])
    return (odd + even) % 26 == ord(text[15]) - 65


def singapore(number: bytes) -> bool:
    """NRIC and FIN: a letter by the remainder of 11."""
    first = number[:1]
    total = _weighted(number[1:8], (2, 7, 6, 5, 4, 3, 2)) + {b"T": 4, b"G": 4, b"M": 3}.get(first, 0)
    letters = {b"S": b"JZIHGFEDCBA", b"T": b"JZIHGFEDCBA", b"M": b"KLJNPQRTUWX"}.get(first, b"XWUTRQPNMLK")
    place = 10 - total % 11 if first == b"M" else total % 11
    return letters[place : place + 1] == number[8:]


def china(number: bytes) -> bool:
    """Resident identity number: date, ISO 7064 modulo 11-2."""
    if not _is_date(int(number[6:10]), int(number[10:12]), int(number[12:14])):
        return False
    total = _weighted(number[:17], (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    return b"10X98765432"[total % 11 : total % 11 + 1] == number[17:]


def britain_insurance(number: bytes) -> bool:
    """NINO: prefixes that are not given."""
    return number[:2] not in (b"BG", b"GB", b"KN", b"NK", b"NT", b"TN", b"ZZ")


def britain_driver(number: bytes) -> bool:
    """Driver number: month (plus 50: women) and day of birth in the sixth to eleventh place; no check digit."""
    return int(number[6:8]) % 50 in range(1, 13) and 1 <= int(number[8:10]) <= 31


def germany_health(number: bytes) -> bool:
    """KVNR: the letter as two digits, then weights 1 and 2, digit sums, modulo 10."""
    digits = b"%02d" % (number[0] - 64) + number[1:9]
    total = 0
    for i, byte in enumerate(digits):
        value = (byte - 48) * (1 if i % 2 == 0 else 2)
        total += value // 10 + value % 10
    return total % 10 == number[9] - 48


def germany_pension(number: bytes) -> bool:
    """Pension insurance number: area, date, letter, digit sums with weights, modulo 10."""
    day, month = int(number[2:4]), int(number[4:6])
    if not (1 <= (day - 50 if day > 50 else day) <= 31 and 1 <= month <= 12):
        return False
    digits = number[:8] + b"%02d" % (number[8] - 64) + number[9:11]
    total = 0
    for byte, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True):
        value = (byte - 48) * weight
        total += value // 10 + value % 10
    return total % 10 == number[11] - 48
