"""Telephone numbers.

A match of a form is a candidate; the numbering plans judge it (numbering.py), and what stands around it: dates, prices,
ISBNs, postal codes and long identifiers share its digits. Any other grouping of digits is a number only next to a word
that says so, before it, behind it or on the line above. A rejected candidate costs its first group of digits alone, so
"NY 10003 212-555-0123" has a number.

Sources: ITU-T E.164 (at most 15 digits), the North American Numbering Plan (area codes and exchanges begin with 2 to
9), ITU-T E.123 (notation), USPS Publication 28 (ZIP+4), RFC 6350 (TEL types behind a number).
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from refinery.transforms.redaction.pii_types.cues import PHONE_ASCII, PHONE_CUE, says
from refinery.transforms.redaction.pii_types.numbering import is_international, is_national, is_north_american
from refinery.transforms.redaction.pii_types.scan import (
    GAP,
    Group,
    Run,
    before,
    compile_bytes,
    digit_groups,
    only_digits,
    stands_alone,
)

DASH = rb"(?:[ .-]|\xc2\xa0|\xe2\x80[\x90-\x93\xaf])"
EXTENSION = rb"(?: ?(?:x|ext\.?) ?[0-9]{1,6})?"
FORMS = (
    rb"\+[1-9](?:" + GAP + rb"{0,3}[0-9]){6,15}",  # +49 (0)30 123456
    rb"0(?:0|11" + GAP + rb")[1-9][0-9]{0,2}" + GAP + rb"(?:" + GAP + rb"{0,2}[0-9]){7,13}",  # 0049 30 123456
    rb"(?:[018]" + DASH + rb"?)?\([2-9][0-9]{2}\)" + DASH + rb"?[0-9]{3}" + DASH + rb"?[0-9]{2}" + DASH + rb"?[0-9]{2}",
    rb"\([1-9][0-9]{1,3}\) ?[0-9]{3,5}[ -][0-9]{3,4}",  # (85) 5986-8343
    rb"[2-9][0-9]{2}[.-][0-9]{3}[.-][0-9]{2}[.-][0-9]{2}",  # 532-123-45-67
    rb"(?:1" + DASH + rb")?[2-9][0-9]{2}" + DASH + rb"[0-9]{3}" + DASH + rb"[0-9]{4}",  # 212-555-0123
    rb"\(?0[1-9][0-9]{0,4}\)?(?:" + GAP + rb"{1,2}[0-9]{2,8}){1,5}",  # 030/123456, 01 23 45 67 89
    rb"0[1-9][0-9]{8,9}",  # 05321234567
)
FORM = compile_bytes(rb"(?:" + rb"|".join(FORMS) + rb")" + EXTENSION)
EXTENSION_BYTES = 12
EXTENSION_BEHIND = compile_bytes(rb"^ ?(?:x|ext\.?) ?[0-9]{1,6}\b")
NOT_A_PHONE = compile_bytes(
    rb"^(?:[0-3]?[0-9][./-][01]?[0-9][./-][12][0-9]{3}(?:[^0-9]|$)"  # 31.12.2020
    rb"|[12][0-9]{3}[./-][01]?[0-9][./-][0-3]?[0-9](?:[^0-9]|$)"  # 2020-12-31
    rb"|[12][0-9]{3} ?(?:-|/|\xe2\x80\x93) ?(?:[12][0-9]{3}|[0-9]{2})$"  # 1998-2003
    rb"|(?:19|20)[0-9]{6}$"  # 20201231
    rb"|[1-9][0-9]{0,2}(?:[ .][0-9]{3}){2,}[ .]?$"  # 2 000 000, unless a cue stands right before it
    rb"|(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}[0-9]{1,3}$"  # 10.0.0.1
    rb"|\+?[0-9]+\.[0-9]+$)"  # 3.141592
)
FALLING = compile_bytes(rb"^[0-9]{4} ?(?:-|/|\xe2\x80\x93) ?[0-9]{4}$")  # 1588-1234: no years from one to another
THOUSANDS = compile_bytes(rb"^[1-9][0-9]{0,2}(?: [0-9]{3}){2,}$")
# ISBN-13 with its prefix 978 or 979 and all its 13 digits; 978 and 979 alone are area codes of Massachusetts.
ISBN_DIGITS = 13
# A postal code of the United States with its four digits more, behind a state: "MA 02111-1307", old GPL notices.
ZIP4 = compile_bytes(rb"^[0-9]{5}-[0-9]{4}$")
STATE = compile_bytes(rb"\b[A-Z]{2},? {1,2}$")
# The beginning of a bank account number, whose groups of four look like anything.
IBAN_BEFORE = compile_bytes(rb"\b[A-Z]{2}[0-9]{2} ?(?:[A-Z0-9]{4} )*$")

NAMES = (
    rb"tel|tele?phones?|phones?|ph|fax|fon|mobile|mob|cellphones?|cellular|whatsapp|viber|hotline|helpline|toll[- ]free"
    rb"|sms|tel\xc3\xa9fono|telefono|t\xc3\xa9l\xc3\xa9phone|t\xc3\xa9l|telefon\w{0,6}|telefone|tlf|telefax|handy|mobil"
    rb"|mobilnummer|telefonnummer|rufnummer|m\xc3\xb3vil|celular|portable|cellulare|gsm|cep|"
) + PHONE_ASCII.encode()
FILLER = (
    rb"(?:phones?|me|us|him|her|them|you|at|on|to|the|my|our|your|is|was|numbers?|no|nr|num"
    rb"|numara\w{0,3}|line|desk|or|and|via)"
)
FILLERS = rb"(?:[ \t:.,#('\"-]{1,4}" + FILLER + rb"\b){0,4}"
WORDS = rb"\b(?:" + NAMES + rb")"
SAYS_SO = compile_bytes(
    rb"(?i)(?:"
    + WORDS
    + rb"(?:[^0-9\n\w][^0-9\n+(]{0,20}|[^\x00-\x7f]{0,12}|_?(?:no|number))"  # a name, and words between
    + rb"|"
    + WORDS
    + FILLERS
    + rb"[ \t:.#*-]{0,4}\r?\n[ \t>*#/-]{0,16}"  # a name on the line above
    + rb"|\b(?:calls?|called|calling|dial|text|texts|texting|answering|reach(?:ed)?|ring|contact(?:ed)?"
    rb"|messages?|voicemail|pager)\b"
    + FILLERS
    + rb"[ \t:.#*('\"-]{1,4}"  # a verb: directly before it
    + rb"|\bcell(?:[ \t:.#-]{1,4}"
    + FILLER
    + rb"\b){1,4}[ \t:.#-]{1,4}"  # my cell is
    + rb"|\b(?:desk|office|home|work|direct|main|voice|cell)[ \t]{0,2}[:#][ \t:.#*('\"-]{1,4}"  # a label
    + rb")$"
)
# In a list of numbers the cue stands before the first.
CHAIN_BYTES = 8
CHAIN = compile_bytes(rb"(?i)^(?:[ \t,;/|]|or|and|y|und|et|&){1,8}$")
NAME_BEHIND = compile_bytes(
    rb"(?i)[ \t,(\[-]{0,3}(?:office|mobile|fax|cell|home|work|tel|phone|voice|direct|desk"
    rb"|main)\b[ \t]*(?:[\n\r,;)\]\\|/.]|$)"
)
NAME_BEHIND_BYTES = 24
MIN_CUED, MAX_CUED = 6, 13  # digits of a subscriber number (E.164 leaves 14 behind a country code of one digit)


def phones(data: bytes, runs: Iterable[Run]) -> Iterator[tuple[int, int]]:
    """Numbers in stretches of digits, in order. Linear: candidates are bounded, a rejected one moves past a group."""
    last = 0
    for run in runs:
        if _is_quantity(data, run):
            continue
        found = _named_behind(data, run, last)
        if found is not None:
            yield found
            last = found[1]
            continue
        at = last
        for i, group in enumerate(run.groups):
            if group.start < at:
                continue
            start = _with_sign(data, group.start, at)
            cued = (i == 0 or start - last <= CHAIN_BYTES) and is_cued(data, start, last)
            formed = cued or _may_begin(data, start, run.groups, i)
            found = (formed and _formed(data, start, run, cued)) or (
                _cued(data, start, run.groups[i : i + MAX_CUED]) if cued else None
            )
            if found:
                yield found
                at = last = found[1]
            else:
                at = group.end


def _is_quantity(data: bytes, run: Run) -> bool:
    """Whether a stretch is a decimal or a part of a word: most of those in sources, and told without a pattern."""
    if len(run.groups) == 2 and data[run.groups[0].end : run.groups[1].start] == b".":
        return True
    return len(run.groups) == 1 and data[run.end : run.end + 1].isalpha() and data[run.end] not in b"xe"


def _may_begin(data: bytes, start: int, groups: list[Group], i: int) -> bool:
    """Whether a form may begin here, by sizes alone: what keeps a table of numbers cheap."""
    if data[start] in b"+(":
        return True
    size = groups[i].end - groups[i].start
    if data[start] == 48 and (size > 1 or b"(" in data[start : start + 3]):
        return True
    follows = groups[i + 1].end - groups[i + 1].start if i + 1 < len(groups) else 0
    return size in (1, 3) and follows == 3


def _formed(data: bytes, start: int, run: Run, cued: bool) -> tuple[int, int] | None:
    """A number that begins here and has one of the forms."""
    match = FORM.match(data, start, run.end + EXTENSION_BYTES)
    if not match:
        return None
    end: int = match.end()
    return (start, end) if stands_alone(data, start, end) and _is_phone(data, start, end, cued) else None


def _with_sign(data: bytes, start: int, floor: int) -> int:
    """Where a number begins whose first digit is at `start`: brackets and plus signs belong to it."""
    for _ in range(2):
        if start > floor and data[start - 1] in b"+(":
            start -= 1
    return start


def is_cued(data: bytes, start: int, last: int) -> bool:
    """Whether words before it say that a number follows; last: where the number before it ended."""
    left = before(data, start)
    if last and start - last <= CHAIN_BYTES and CHAIN.match(data[last:start]):
        return True
    return bool(SAYS_SO.search(left)) or says(PHONE_CUE, data, start)


def _cued(data: bytes, start: int, groups: list[Group]) -> tuple[int, int] | None:
    """The longest number of up to MAX_CUED digits that begins here and that nothing contradicts."""
    for count in range(len(groups), 0, -1):
        end = groups[count - 1].end
        if not MIN_CUED <= sum(group.end - group.start for group in groups[:count]) <= MAX_CUED:
            continue
        number = data[start:end]
        if count == 1 and end - groups[0].start < MIN_CUED + 1:
            continue
        if _is_dated(number) and not THOUSANDS.match(number):
            continue
        if STATE.search(before(data, start)) and ZIP4.match(number):
            continue
        if number.count(b"(") == number.count(b")") and stands_alone(data, start, end):
            behind = EXTENSION_BEHIND.search(data[end : end + 16])
            return start, end + (behind.end() if behind else 0)
    return None


def _named_behind(data: bytes, run: Run, last: int) -> tuple[int, int] | None:
    """The whole run, where a word behind it says what it is: "416 60 039 office"."""
    start, end = _with_sign(data, run.groups[0].start, last), run.end
    digits = sum(group.end - group.start for group in run.groups[: MAX_CUED + 1])
    if not MIN_CUED <= digits <= MAX_CUED or not NAME_BEHIND.match(data, end, end + NAME_BEHIND_BYTES):
        return None
    number = data[start:end]
    if (_is_dated(number) and not THOUSANDS.match(number)) or number.count(b"(") != number.count(b")"):
        return None
    return (start, end) if stands_alone(data, start, end) else None


def _is_dated(number: bytes) -> bool:
    """Whether a date, a decimal, an amount or an ISBN has the same form."""
    digits = only_digits(number)
    if digits[:3] in (b"978", b"979") and len(digits) == ISBN_DIGITS:
        return True
    if len(digits) == 8 and FALLING.match(number) and digits[:4] > digits[4:]:
        return False
    return bool(NOT_A_PHONE.match(number))


def _is_phone(data: bytes, start: int, end: int, cued: bool) -> bool:
    """The rules of each form that a regular expression cannot say, and the numbering plans."""
    number = _without_extension(data[start:end])
    groups = [number[group.start : group.end] for group in digit_groups(number, 0, len(number))]
    sizes = [len(group) for group in groups]
    digits = only_digits(number)
    if any(len(group) > 4 and not group.strip(b"0") for group in groups):
        return False
    if number.startswith((b"+", b"00", b"011")) and not _is_dated(number):
        return _is_abroad(number, digits, sizes, cued)
    if _is_dated(number) or IBAN_BEFORE.search(before(data, start)) or _is_isbn(data, start, end):
        return False
    if ZIP4.match(number) and STATE.search(before(data, start)):
        return False
    if digits[:1] == b"0" and not (b"(" in number and sizes[:2] == [1, 3]):
        return _is_trunk(number, digits, sizes, cued)
    if b"(" in number:
        return cued or sizes[-3:] == [3, 3, 4] or (len(digits) >= 10 and not _is_page_range(groups))
    if len(sizes) >= 4 and sizes[-1] == 2:  # 532-123-45-67
        return True
    ten = digits[-10:]
    if cued:
        return True
    if ten[3:4] in (b"0", b"1"):
        return False
    gaps = {number[-5:-4], number[-9:-8]}
    return (len(gaps) == 1 and b" " not in gaps) or is_north_american(ten.decode())


def _is_page_range(groups: list[bytes]) -> bool:
    """(1989) 490-595 and 12 (34) 1234-1240: a year or a volume, and pages that ascend."""
    return len(groups[0]) == 4 or (len(groups) == 3 and len(groups[1]) == len(groups[2]) and groups[1] < groups[2])


def _is_isbn(data: bytes, start: int, end: int) -> bool:
    """Whether the digits go on to make thirteen that begin with 978 or 979."""
    if data[start : start + 3] not in (b"978", b"979"):
        return False
    rest = data[start : end + 8].partition(b"\n")[0]
    return len(only_digits(rest)) == ISBN_DIGITS and b"-" in data[end : end + 2]


def _is_abroad(number: bytes, digits: bytes, sizes: list[int], cued: bool) -> bool:
    """+49 (0)30 123456: the country code and the length decide; a lone trunk prefix in brackets does not count."""
    if b"(0)" in number:
        at = number.index(b"(0)")
        number = number[:at] + number[at + 3 :]
        digits = only_digits(number)
        sizes = [group.end - group.start for group in digit_groups(number, 0, len(number))]
    prefix = 3 if number.startswith(b"011") else 2 if number.startswith(b"00") else 0
    if sum(size == 1 for size in sizes) > 2:
        return False
    return is_international(digits[prefix:].decode())


def _is_trunk(number: bytes, digits: bytes, sizes: list[int], cued: bool) -> bool:
    """A number behind the trunk prefix 0: 9 to 12 digits; five pairs; a slash only behind the area code."""
    if not 9 <= len(digits) <= 12 or sizes == [3, 2, 4] or (ZIP4.match(number) and not cued):
        return False
    if len(sizes) == 1:
        return (cued or _is_varied(digits)) and is_national(digits[1:], "general_desc" if cued else "mobile")
    pairs = len(sizes) == 5 and set(sizes) == {2}
    if b"." in number and not pairs and not cued:
        return False
    if b"/" in number[sizes[0] + 2 :]:
        return False
    shaped = pairs or sizes[0] > 2 or sizes == [2, 3, 4] or (len(digits) == 10 and len(sizes) <= 3)
    return (cued or shaped) and (cued or is_national(digits[1:]))


def _is_varied(digits: bytes) -> bool:
    """No row of digits (0123456789, 09876543210, 07777777777) and no binary number."""
    steps = {(b - a) % 10 for a, b in pairwise(digits[1:])}
    return len(steps) > 2 and len(set(digits)) > 3


def _without_extension(match: bytes) -> bytes:
    for mark in (b"x", b"e"):
        match = match.partition(mark)[0]
    return match.rstrip()
