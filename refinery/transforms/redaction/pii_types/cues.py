"""Words that say what number follows, in the languages of the web beside those that phones.py and payments.py have.

Patterns here know letters of all scripts (RE2 over UTF-8), so a word is a word: "тел." is a cue, "отель" is none.
They are asked only where something beyond ASCII stands before a number. Sources: the contact pages and forms of large
sites; Unicode CLDR has no such list.
"""

import re
from typing import Any

import re2

from refinery.transforms.redaction.pii_types.lazy_pattern import LazyPattern

PHONE_ASCII = (
    "telefoon|telefoonnummer|telefonnumber|telefonas|telefons|telefonszam|telefoni|telefonu|telepon|telpon|telepono|ponsel"
    "|nomor hp|no hp|puhelin|puhelinnumero|matkapuhelin|gsm-nummer|mobiel|mobiili|mobilus|mobilusis|mobilais|mobitel"
    "|mobilni|komorka|tel kom|faks|faksas|fakss|faksi|telefaks|tlfn|telemovel|cellulari|dien thoai|sdt|so dien thoai"
    "|di dong|belgegecer|nomor telepon"
)
"""names in ASCII, for phones.py"""
PHONE = (
    "tlf|teléfono|telèfon|telefón|telefónszám|telefonszám|téléphone|tél|móvil|telemóvel|mòbil|tālrunis|tālr|sími"
    "|símanúmer|farsími|điện thoại|số điện thoại|đt|sđt|di động|komórka|komórkowy|numer telefonu|číslo|belgegeçer"
    "|τηλέφωνο|τηλεφωνο|τηλέφωνα|τηλ|κινητό|κιν|φαξ|καλέστε|тел|тлф|телефон|телефона|телефоны|телефону|телефоном|телефонен"
    "|телефонот|телефоне|моб|мобильный|мобильного|мобилен|мобілен|мобільний|мобилни|сотовый|сот|факс|звоните|позвоните"
    "|звонить|дзвоніть|телефонуйте|ватсап|вотсап|вайбер|утас|հեռախոս|հեռ|բջջ|ტელეფონი|ტელ|მობილური|მობ"
    "|טלפון|טל|נייד|סלולרי|פלאפון|פקס|התקשרו|חייגו|هاتف|الهاتف|تلفون|جوال|الجوال|موبايل|محمول|المحمول|نقال|واتساب|واتس"
    "|فاكس|اتصل|للتواصل|للاتصال|تلفن|موبایل|تماس|نمابر|واتساپ|فون|موبائل"
)
PHONE_UNSPACED = (
    "电话|電話|手机|手機|行動電話|联系方式|聯絡電話|热线|熱線|传真|傳真|致电|致電|拨打|撥打|携帯|ケータイ|ファックス|ファクス"
    "|フリーダイヤル|お問い合わせ|전화|휴대폰|휴대전화|핸드폰|연락처|팩스|대표번호|문의"
    "|โทรศัพท์|โทร|มือถือ|เบอร์|แฟกซ์|ໂທລະສັບ|ໂທ|ទូរស័ព្ទ|លេខទូរស័ព្ទ|ဖုန်း|တယ်လီဖုန်း"
    "|फ़ोन|फोन|मोबाइल|मोबाईल|दूरभाष|दूरध्वनी|संपर्क|सम्पर्क|ফোন|মোবাইল|দূরভাষ|যোগাযোগ|ਫ਼ੋਨ|ਫੋਨ|ਮੋਬਾਈਲ|ફોન|મોબાઇલ|ଫୋନ"
    "|தொலைபேசி|கைபேசி|அலைபேசி|ఫోన్|మొబైల్|ఫోను|ದೂರವಾಣಿ|ಫೋನ್|ಮೊಬೈಲ್|ഫോൺ|മൊബൈൽ|දුරකථන|ජංගම|ስልክ"
)
CARD = (
    "карта|карты|карту|карте|картой|картки|картка|картку|картата|κάρτα|κάρτας|tarjeta|cartão|kártya|kártyaszám|thẻ"
    "|číslo karty|כרטיס|אשראי|بطاقة|البطاقة|ائتمان|کارت|شماره کارت|կարդ|ბარათი|ბარათის"
)
CARD_UNSPACED = "卡号|卡號|信用卡|银行卡|銀行卡|储蓄卡|借记卡|カード|카드|बैंक कार्ड|कार्ड|কার্ড|บัตร|கார்டு|కార్డు|ካርድ"
IDENTITY = (
    "паспорт|паспорта|паспорту|инн|снилс|рнокпп|єдрпоу|егн|јмбг|αφμ|αμκα|διαβατήριο|ταυτότητα|útlevél|személyi|hộ chiếu"
    "|cccd|cmnd|số cmnd|דרכון|תעודת זהות|جواز|جواز سفر|رقم الهوية|الهوية|الرقم القومي|کد ملی|گذرنامه|شماره ملی"
    "|شناختی کارڈ"
)
IDENTITY_UNSPACED = (
    "身份证|身份證|护照|護照|公民身份|パスポート|旅券|マイナンバー|個人番号|여권|주민등록번호|주민번호|외국인등록번호"
    "|आधार|पासपोर्ट|पैन|আধার|পাসপোর্ট|জাতীয় পরিচয়|บัตรประชาชน|เลขประจำตัว|หนังสือเดินทาง|ஆதார்|ఆధార్|ಆಧಾರ್"
)
OTHER_LETTER = re.compile(rb"[\xc3-\xe1\xe3-\xf4]")  # of two bytes and more; \xe2 is punctuation
BYTES = 120  # before a number that are read: letters of other scripts have two and three


def _cue(spaced: str, unspaced: str, tail: int) -> Any:
    """A word, perhaps inflected, then signs and a few words without digits up to the number."""
    options = re2.Options()
    options.max_mem = 64 << 20
    words, above = rf"[^0-9\n+(]{{0,{tail}}}", r"[ \t:.#*-]{0,4}\r?\n[ \t>*#/-]{0,16}"
    pattern = (
        rf"(?i)(?:(?:^|[^\p{{L}}\p{{M}}])(?:{spaced})(?:[^\p{{L}}\p{{M}}\p{{N}}\n]{words}|{above})"
        rf"|(?:{unspaced})(?:{words}|{above}))$"
    )
    return LazyPattern(lambda: re2.compile(pattern.encode(), options))


PHONE_CUE = _cue(PHONE, PHONE_UNSPACED, 20)
CARD_CUE = _cue(CARD, CARD_UNSPACED, 24)
IDENTITY_CUE = _cue(IDENTITY, IDENTITY_UNSPACED, 20)


def says(cue: Any, data: bytes, start: int) -> bool:
    """Whether a word of one of the patterns above stands before data[start]; False at once where all is ASCII
    and punctuation."""
    left = data[max(0, start - BYTES) : start]
    if not OTHER_LETTER.search(left):
        return False
    return bool(cue.search(left.decode(errors="ignore").encode()))
