"""Personal data of a recognisable form: replaced, replaced by pseudonyms, or the page is dropped.

A match of a pattern is only a candidate; check digits, numbering plans and what stands around it decide. One look at
every byte tells which families of patterns a text may have (`HINTS`); a text without candidates costs that look. The
families are in pii_types/, one file each; `RULES` below is the list of types, from which reasons, placeholders and
switches follow.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

from pydantic import model_validator

from refinery.transforms.core.document import Document, Drop, FailClosed
from refinery.transforms.core.params import Params
from refinery.transforms.core.resources import read_key
from refinery.transforms.core.spans.marks import edited, marks_of, shown
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.redaction.pii_types import (
    code_values,
    datatrove,
    emails,
    folding,
    identities,
    networks,
    payments,
    phones,
    places,
    source_code,
)
from refinery.transforms.redaction.pii_types.pseudonyms import Pseudonyms
from refinery.transforms.redaction.pii_types.scan import RUN_HINT, Hinted, Hints, number_runs

Kind = Literal["email", "ip", "mac", "iban", "card", "imei", "ssn", "national_id", "phone", "user_path", "address"]


class Span(NamedTuple):
    """text[start:end] is personal data; character offsets."""

    start: int
    end: int
    kind: Kind


class Rule(NamedTuple):
    """A type of personal data. Where two overlap, the one that comes first in `RULES` wins."""

    kind: Kind
    meaning: str
    source: str


RULES = (
    Rule("email", "an e-mail address", "RFC 5321 4.5.3.1, RFC 1035 2.3.4"),
    Rule(
        "ip",
        "an IP address that is not a version or an object identifier",
        "IANA's special-purpose registries, RFC 4291",
    ),
    Rule("mac", "a MAC address", "IEEE 802"),
    Rule("iban", "an IBAN of its country's length whose remainder of 97 is 1", "ISO 13616, SWIFT's registry"),
    Rule("card", "a card number with Luhn's digit, of a network's range or next to a cue", "ISO/IEC 7812-1"),
    Rule("imei", "an IMEI with Luhn's digit next to a cue", "3GPP TS 23.003"),
    Rule("ssn", "a US social security number, with hyphens or next to a cue", "Social Security Administration"),
    Rule("national_id", "a national number whose checks hold", "the lines of pii_types/identities.py"),
    Rule("phone", "a telephone number of a numbering plan or next to a cue", "ITU-T E.164, E.123, libphonenumber"),
    Rule("user_path", "a user's name in the path of a file", "Filesystem Hierarchy Standard 3.0"),
    Rule("address", "a street address", "USPS Publication 28"),
)


class PiiParams(Params):
    """What counts as personal data and what becomes of it."""

    LATER: ClassVar[tuple[str, ...]] = ("style", "remains", "matching")

    action: Literal["redact", "drop", "note"] = "redact"
    """`redact` replaces every match, `drop` refuses the document, `note` only counts the matches and leaves the text as
    it is"""
    style: Literal["prose", "code"] = "prose"
    """`code`, for source files: `<redacted-email>`, `<redacted-network-address>` and `<redacted-path>/` for a home
    directory replace what has no replacement of its own, and values that belong to nobody in source code stay"""
    remains: Literal["unchecked", "drop", "fail"] = "unchecked"
    """`drop` and `fail` search the text again after redaction; anything found then drops the document or ends the
    run"""
    matching: Literal["own", "datatrove"] = "own"
    """`datatrove`: e-mail and IPv4 addresses are what FineWeb's code takes for them, by their form alone, and there are
    no others: [conformance.md](conformance.md#personal-data)"""
    email: bool = True
    """e-mail addresses"""
    phone: bool = True
    """telephone numbers"""
    ip: bool = True
    """IP addresses"""
    private_ip: bool = False
    """also addresses of private, loopback and other ranges that IANA reserves"""
    mac: bool = True
    """MAC addresses"""
    iban: bool = True
    """bank account numbers"""
    card: bool = True
    """numbers of payment cards"""
    imei: bool = True
    """numbers of mobile devices"""
    ssn: bool = True
    """US social security numbers"""
    national_id: bool = True
    """national identity, tax, health and passport numbers, by their check digits or next to a word that names them"""
    user_path: bool = True
    """names of users in absolute paths of files, below `home` or `Users`"""
    address: bool = False
    """street addresses and post office boxes; by form alone, so with more mistakes than the others"""
    email_replacement: str = "<EMAIL>"
    """replacement for an e-mail address"""
    phone_replacement: str = "<PHONE>"
    """replacement for a telephone number"""
    ip_replacement: str = "<IP>"
    """replacement for an IP address"""
    mac_replacement: str = "<MAC>"
    """replacement for a MAC address"""
    iban_replacement: str = "<IBAN>"
    """replacement for a bank account number"""
    card_replacement: str = "<CARD>"
    """replacement for a card number"""
    imei_replacement: str = "<IMEI>"
    """replacement for a device's number"""
    ssn_replacement: str = "<SSN>"
    """replacement for a US social security number"""
    national_id_replacement: str = "<NATIONAL_ID>"
    """replacement for a national number"""
    user_path_replacement: str = "<USER>"
    """replacement for a user's name in a path"""
    address_replacement: str = "<ADDRESS>"
    """replacement for a street address"""
    pseudonym_key: str = ""
    """where to find the secret key of pseudonyms, never the key itself: `env:NAME` (the worker's environment) or a
    file, local, `gs://` or `s3://`; with it `<EMAIL>` becomes `<EMAIL_4f2k7q2m5xwa>`, the same for the same address
    in every document; empty: no pseudonyms"""
    pseudonym_key_id: str = ""
    """eight hexadecimal digits that identify the secret; if they are missing, the error message gives them"""

    @model_validator(mode="after")
    def _check_key_id(self) -> "PiiParams":
        if self.pseudonym_key_id and not self.pseudonym_key:
            raise ValueError(
                f"pseudonym_key_id: {self.pseudonym_key_id!r} given, only with pseudonym_key is it allowed"
            )
        return self

    @model_validator(mode="after")
    def _check_replacements(self) -> "PiiParams":
        for rule in RULES if self.remains != "unchecked" else ():
            if find_pii(f"x {self.replacement(rule.kind)} x", self):
                raise ValueError(
                    f"{rule.kind}_replacement: {self.replacement(rule.kind)!r} given, with `remains: {self.remains}` a "
                    "text that is not itself personal data is allowed"
                )
        return self

    def replacement(self, kind: Kind) -> str:
        """The text that stands for a match."""
        name = f"{kind}_replacement"
        text: str = getattr(self, name)
        own = self.style == "prose" or text != type(self).model_fields[name].default
        return text if own else source_code.FORMS[kind]


HINTS = Hints(
    {
        "run": RUN_HINT,
        "fold": folding.fold_hint,
        "wide": emails.WIDE_HINT,
        "spelt": emails.SPELT_HINT,
        "ipv4": networks.IPV4_HINT,
        "ipv6": networks.PUBLIC_IPV6_HINT,
        "mac": networks.MAC_HINT,
        "iban": payments.IBAN_HINT,
        "lettered": identities.LETTERED_HINT,
        "path": places.PATH_HINT,
    }
)
ROUNDS = 3  # of redaction, where what remains is searched for; a replacement may give context to what stands beside it
REMAINS = "pii-remains"
NUMBERS: tuple[identities.NumberKind, ...] = ("imei", "card", "ssn", "national_id")


def find_pii(text: str, params: PiiParams) -> list[Span]:
    """Personal data in `text`, in order and without overlap.

    Digits and signs of other scripts count as those of ASCII. Raises UnicodeEncodeError for lone surrogates. Cost:
    linear; about 3 ms per MB of text without candidates.
    """
    data = text.encode()
    hints = HINTS.of(data)
    if "fold" in hints and params.matching == "own":
        data = folding.fold(text).encode()
        hints = HINTS.of(data)
    if hints.nothing and b"@" not in data and not params.address and not params.private_ip:
        return []
    found = list(_candidates(data, params, hints))
    if params.style == "code":
        found = list(code_values.of_somebody(data, found))
    if not found:
        return []
    return list(_in_characters(data, _without_overlap(found)))


def _candidates(data: bytes, params: PiiParams, hints: Hinted) -> Iterator[tuple[int, int, Kind]]:
    """What each type takes, by byte offsets, overlapping."""
    yield from _as_datatrove(data, params, hints) if params.matching == "datatrove" else _addresses(data, params, hints)
    if params.mac and "mac" in hints:
        yield from ((start, end, "mac") for start, end in networks.macs(data))
    if params.iban and "iban" in hints:
        yield from ((start, end, "iban") for start, end in payments.ibans(data))
    if params.national_id and "lettered" in hints:
        yield from ((start, end, "national_id") for start, end in identities.lettered(data))
    if "run" in hints:
        runs = list(number_runs(data))
        kinds = frozenset(kind for kind in NUMBERS if getattr(params, kind))
        if kinds:
            yield from identities.numbers(data, runs, kinds)
        if params.phone:
            yield from ((start, end, "phone") for start, end in phones.phones(data, runs))
    if params.user_path and "path" in hints:
        users = source_code.homes if params.style == "code" else places.user_names
        yield from ((start, end, "user_path") for start, end in users(data))
    if params.address:
        yield from ((start, end, "address") for start, end in places.addresses(data))


def _addresses(data: bytes, params: PiiParams, hints: Hinted) -> Iterator[tuple[int, int, Kind]]:
    """E-mail and IP addresses."""
    if params.email and b"@" in data:
        yield from ((start, end, "email") for start, end in emails.emails(data))
    if params.email and "wide" in hints:
        yield from ((start, end, "email") for start, end in emails.wide_emails(data))
    if params.email and "spelt" in hints:
        yield from ((start, end, "email") for start, end in emails.spelt_emails(data))
    if params.ip and "ipv4" in hints:
        yield from ((start, end, "ip") for start, end in networks.ipv4(data, params.private_ip))
    if params.ip and ("ipv6" in hints or (params.private_ip and b"::" in data)):
        yield from ((start, end, "ip") for start, end in networks.ipv6(data, params.private_ip))


def _as_datatrove(data: bytes, params: PiiParams, hints: Hinted) -> Iterator[tuple[int, int, Kind]]:
    """The same by FineWeb's patterns."""
    taken = list(datatrove.emails(data)) if params.email else []
    yield from ((start, end, "email") for start, end in taken)
    if params.ip and "ipv4" in hints:
        yield from ((start, end, "ip") for start, end in datatrove.ipv4(data, taken, params.private_ip))


def _without_overlap(found: list[tuple[int, int, Kind]]) -> list[tuple[int, int, Kind]]:
    """By the order of rules, then position; each pass keeps what touches nothing kept before."""
    kept: list[tuple[int, int, Kind]] = []
    for rule in RULES:
        merged: list[tuple[int, int, Kind]] = []
        i = 0
        for span in sorted(span for span in found if span[2] == rule.kind):
            while i < len(kept) and kept[i][1] <= span[0]:
                i += 1
            if (i == len(kept) or span[1] <= kept[i][0]) and (not merged or merged[-1][1] <= span[0]):
                merged.append(span)
        kept = sorted(kept + merged)
    return kept


def _in_characters(data: bytes, spans: list[tuple[int, int, Kind]]) -> Iterator[Span]:
    """Byte offsets to character offsets, one pass over the text."""
    at = characters = 0
    for start, end, kind in spans:
        first = characters + len(data[at:start].decode())
        at, characters = end, first + len(data[start:end].decode())
        yield Span(first, characters, kind)


@lru_cache(maxsize=8)
def load_pseudonyms(params: PiiParams) -> Pseudonyms | None:
    """What makes pseudonyms, once per process; None without a key.

    Raises ValueError for a short or missing key and for one with another id, OSError for a missing file.
    """
    if not params.pseudonym_key:
        return None
    return Pseudonyms(read_key(params.pseudonym_key, params.pseudonym_key_id, "pseudonym_key", "pii"))


def redact_pii(doc: Document, params: PiiParams) -> Document | Drop:
    """`judge_pii` with the secret that `params` name."""
    return judge_pii(doc, load_pseudonyms(params), params)


def judge_pii(doc: Document, pseudonyms: Pseudonyms | None, params: PiiParams) -> Document | Drop:
    """The document without personal data; itself where there is none.

    `meta["pii"]` is the number of matches, `meta["pii_types"]` how many of each type. With action note the text stays;
    with action drop: the reason of the first rule that has a match. The id stays: it names the text before redaction.
    What is found after ROUNDS of redaction is REMAINS where `remains` is drop, and raises FailClosed where it is fail.
    """
    kinds, marks, given = Counter[Kind](), marks_of(doc), doc
    for _ in range(1 if params.remains == "unchecked" else ROUNDS):
        spans = find_pii(shown(doc.text, marks), params)
        if not spans:
            break
        kinds.update(span.kind for span in spans)
        if params.action != "redact":
            break
        doc = edited(doc, _stand_ins(doc.text, spans, pseudonyms, params))
        marks = marks and marks_of(doc)
    else:
        left = () if params.remains == "unchecked" else find_pii(shown(doc.text, marks), params)
        if left and params.remains == "drop":
            return Drop(REMAINS)
        if left:
            raise FailClosed(
                f"pii: {left[0].kind} is still found after redaction in the document {doc.id.hex()} ({doc.origin}); "
                f"`remains: drop` refuses such documents, `{left[0].kind}: off` leaves the type in place"
            )
    counts = {rule.kind: kinds[rule.kind] for rule in RULES if rule.kind in kinds}
    if not counts:
        return given
    if params.action == "drop":
        return Drop(reason_of(next(iter(counts))))
    types = " ".join(f"{kind}={count}" for kind, count in counts.items())
    return replace(doc, meta={**doc.meta, "pii": kinds.total(), "pii_types": types})


def _stand_ins(
    text: str, spans: list[Span], pseudonyms: Pseudonyms | None, params: PiiParams
) -> list[tuple[int, int, str]]:
    """What is put in place of each span."""
    return [(start, end, _stand_in(text[start:end], kind, pseudonyms, params)) for start, end, kind in spans]


def _stand_in(match: str, kind: Kind, pseudonyms: Pseudonyms | None, params: PiiParams) -> str:
    """<EMAIL>, or with a secret <EMAIL_4f2k7q2m5xwa>."""
    text = params.replacement(kind)
    if pseudonyms is None:
        return text
    if kind == "user_path":  # the name alone, whatever of the path is replaced
        match = re.split(r"[/\\]+", match.rstrip("/\\"))[-1]
    stem = text.removesuffix(">/" if text.endswith(">/") else ">")
    return f"{stem}_{pseudonyms.token(kind, folding.fold(match))}{text[len(stem) :]}"


def reason_of(kind: Kind) -> str:
    """The reason for which `action: drop` refuses a document."""
    return "pii-" + kind.replace("_", "-")


PII = Stage(
    name="pii",
    version=4,
    summary="Replace or count personal data in every document, or drop the documents that have any.",
    concerns=("personal-data",),
    params=PiiParams,
    judge=judge_pii,
    prepare=load_pseudonyms,
    excerpts=False,
    libraries=("google-re2", "phonenumbers", "tldextract"),
    notes=(
        Note("pii", int, "matches, which are replaced unless `action` is `note`", counts=True),
        Note("pii_types", str, 'how many of each type: "email=2 phone=1"'),
    ),
    reasons=(
        *(
            Reason(
                reason_of(rule.kind),
                f"{rule.meaning}, with `action: drop`",
                f"`action: redact` keeps the document, `{rule.kind}: off` the text",
                rule.source,
            )
            for rule in RULES
        ),
        Reason(REMAINS, "personal data is still found after redaction, with `remains: drop`", "nothing: fail closed"),
    ),
)
