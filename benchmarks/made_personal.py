"""Personal data made for measuring: digits of many scripts behind words of many languages, addresses, look-alikes."""

import random
from collections.abc import Iterator
from typing import NamedTuple

SCRIPTS = {
    "ASCII": 0x30,
    "full-width": 0xFF10,
    "Arabic": 0x660,
    "Persian": 0x6F0,
    "Devanagari": 0x966,
    "Bengali": 0x9E6,
    "Thai": 0xE50,
}
CUES = {
    "Arabic": ("رقم الهاتف: {}", "جوال {}"), "Persian": ("تلفن: {}", "شماره تماس {}"),
    "Devanagari": ("फ़ोन: {}", "मोबाइल {}"),
    "Bengali": ("ফোন: {}", "মোবাইল {}"), "Thai": ("โทร {}", "เบอร์โทรศัพท์ {}"), "full-width": ("電話番号：{}", "携帯：{}"),
    "ASCII": (
        "Τηλέφωνο: {}", "Τηλ. {}", "телефон: {}", "моб. {}", "טלפון: {}", "Điện thoại: {}", "SĐT: {}", "전화번호: {}",
        "电话：{}",
        "手机 {}", "Puhelin: {}", "Telepon: {}", "Tālrunis: {}", "Telefonas: {}", "Telefonszám: {}", "Հեռ. {}",
        "ტელ: {}", "Komórka: {}", "Telemóvel: {}", "தொலைபேசி: {}", "ఫోన్: {}", "Sími: {}", "Telefoon: {}", "Telefon: {}",
        "Teléfono: {}", "Téléphone : {}", "Phone: {}", "call me at {}",
    ),
}  # fmt: skip
EMAILS = (
    "john [at] example [dot] com", "jane.doe (at) example (dot) org", "john at example dot com",
    "JOHN AT EXAMPLE DOT COM",
    "ana (arroba) example (punto) es", "max (ät) example [punkt] de", "john{at}example{dot}net", "иван@почта.рф",
    "用户@例子.中国", "info@例え.jp",
    "χρήστης@παράδειγμα.ελ", "taro.yamada＠example.co.jp", "jane@example.org", "x@163.com",
    "मेल@उदाहरण.भारत", "משתמש@דוגמה.ישראל", "jane.doe+news@mail.example.museum",
)  # fmt: skip
CLEAN = (
    "git clone git@github.com:psf/requests.git", "ssh://git@gitlab.example.org/group/project",
    "svn@svn.example.org/repo",
    "compression zlib@openssh.com", "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com",
    "curve25519-sha256@libssh.org",
    "systemctl status getty@tty1.service user@1000.service", "logrotate@daily.timer", "logo@2x.png and image@3x.heic",
    "icon@1.5x.webp", "react@18.0.0-rc.one", "look at example dot com for more", "She looked at the polka dot dress",
    "отель 123456 на море", "строитель 654321", "２０２０年１２月３１日", "価格は１２３，４５６円です",
    "سنة ٢٠٢٠/١٢/٣١", "1999ー2005年",
    "The number 2220991234567896 was written.", "The number 2721001234567897 was written.", "call 2010-2015",
    "version 10.20.30.40", "order 5551234567", "call printf(\"%d@%d.%d\")",
)  # fmt: skip


class Made(NamedTuple):
    """A text and the span of personal data in it; type None: there is none."""

    text: str
    start: int
    end: int
    type: str | None
    kind: str


def in_script(text: str, script: str) -> str:
    """ASCII's digits as those of another script; full-width signs, too."""
    zero = SCRIPTS[script]
    if script == "full-width":
        return "".join(chr(ord(char) + 0xFEE0) if 33 <= ord(char) < 127 else char for char in text)
    return "".join(chr(zero + int(char)) if "0" <= char <= "9" else char for char in text)


def luhn_number(rng: random.Random, first: int) -> str:
    """A card's number of 16 digits that begins with `first`."""
    body = f"{first}{rng.randrange(10 ** (15 - len(str(first)))):0{15 - len(str(first))}d}"
    digits = [int(char) for char in reversed(body)]
    total = sum((2 * d - 9 if d > 4 else 2 * d) if i % 2 == 0 else d for i, d in enumerate(digits))
    return body + str(-total % 10)


def _placed(template: str, value: str, kind_of: str, kind: str) -> Made:
    start = template.index("{}")
    return Made(template.replace("{}", value), start, start + len(value), kind_of, kind)


def made_personal(count: int, seed: int) -> Iterator[Made]:
    """Telephone numbers, IP addresses and cards in every script, e-mail addresses, Mastercard's second range."""
    rng = random.Random(seed)
    for script, templates in CUES.items():
        for template in templates:
            for _ in range(count):
                number = f"0{rng.randrange(20, 99)}-{rng.randrange(2000, 9999)}-{rng.randrange(1000, 9999)}"
                yield _placed(template, in_script(number, script), "PHONE_NUMBER", f"phone: {script}")
    for script in SCRIPTS:
        for _ in range(count):
            address = ".".join(str(rng.randrange(33, 99)) for _ in range(4))
            yield _placed("from IP {} today", in_script(address, script), "IP_ADDRESS", f"ip: {script}")
            card = luhn_number(rng, rng.randrange(2221, 2721))
            yield _placed("It was {} there.", in_script(card, script), "CREDIT_CARD", f"card: {script}")
    for address in EMAILS:
        yield _placed("Write to {} please.", address, "EMAIL_ADDRESS", "email")
    yield from (Made(text, 0, 0, None, "clean") for text in CLEAN)
