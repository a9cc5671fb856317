"""E-mail addresses, also those written against harvesters and those of other scripts.

Sources: RFC 5321 4.5.3.1 and RFC 1035 2.3.4 (lengths of an address), RFC 6531 (letters of all scripts). What names
nobody: accounts of version control (scp's `git@host:path`), names of algorithms and requests of SSH (RFC 4251 6: a
local extension is `name@domain`), instances of systemd's units (systemd.unit(5): `name@instance.type`), releases
(`package@1.2.3`) and files for dense screens (`icon@2x.png`).
"""

import re
from collections.abc import Iterator

from refinery.transforms.redaction.pii_types.scan import WORD_BYTES, compile_bytes

LETTER = rb"[A-Za-z0-9]|[\xc3-\xdf][\x80-\xbf]"  # and all alphabets with two bytes: Latin to Arabic
WIDE = rb"[\xe0\xe1\xe4-\xed][\x80-\xbf]{2}|\xe3[\x81-\xbf][\x80-\xbf]"  # Devanagari, Thai, Kana, Han, Hangul …
ATOM = rb"(?:" + LETTER + rb"|[_%+'~&-])+"
LABEL = rb"(?:" + LETTER + rb"|-)+"
LOCAL = ATOM + rb"(?:\." + ATOM + rb")*"
FOREIGN_TOP = rb"(?:[\xcd-\xdf][\x80-\xbf]){2,16}"  # рф, ευ, հայ, ישראל, مصر
DOMAIN = rb"(?:" + LABEL + rb"\.)+(?:xn--[A-Za-z0-9]{2,59}|[A-Za-z]{2,24}|" + FOREIGN_TOP + rb")"
EMAIL = compile_bytes(LOCAL + rb"@" + DOMAIN)
# Top-level domains in scripts without spaces, where the next word follows at once; of Devanagari and Thai, too.
_TOPS = """
中国 中國 香港 台湾 台灣 澳门 澳門 新加坡 公司 网络 网址 在线 中文网 商城 商店 商标 集团 我爱你 信息 游戏
移动 手机 世界 网站 企业 娱乐 机构 政务 公益 みんな コム クラウド ストア セール ファッション ポイント グーグル
한국 닷컴 닷넷 삼성 भारत भारतम् कॉम नेट संगठन ভারত বাংলা ভাৰত ਭਾਰਤ ભારત ଭାରତ
இந்தியா இலங்கை சிங்கப்பூர் భారత్ ಭಾರತ ഭാരതം ලංකා ไทย คอม ລາວ გე
"""
_BY_LENGTH: list[bytes] = [top.encode() for top in sorted(_TOPS.split(), key=lambda top: -len(top.encode()))]
TOPS = b"|".join(_BY_LENGTH)
WIDE_LABEL = rb"(?:" + LETTER + rb"|" + WIDE + rb"|-)+"
WIDE_EMAIL = compile_bytes(
    rb"(?:" + LETTER + rb"|" + WIDE + rb"|[_%+'~&.-])+@(?:" + WIDE_LABEL + rb"\.)+(?:" + TOPS + rb"|[A-Za-z]{2,24})"
)
WIDE_HINT = rb"(?:" + WIDE + rb")@|@[^\s@]*(?:" + WIDE + rb")"

# "<name at example.org>", "name (at) example (dot) org": written against harvesters, no less personal.
_OPEN, _CLOSE = rb"[ ]?[\[({<][ ]?", rb"[ ]?[\])}>][ ]?"
AT_WORDS = (
    rb"(?i:at|@|\xc3\xa4t|arroba|arobase|chiocciola|apenstaartje|malpa|ma\xc5\x82pa"
    rb"|\xd1\x81\xd0\xbe\xd0\xb1\xd0\xb0\xd0\xba\xd0\xb0)"
)
DOT_WORDS = rb"(?i:dot|\.|punkt|punto|point|ponto|punt|kropka|nokta|tecka|\xd1\x82\xd0\xbe\xd1\x87\xd0\xba\xd0\xb0)"
AT = _OPEN + AT_WORDS + _CLOSE
DOT = rb"(?:" + _OPEN + DOT_WORDS + _CLOSE + rb"|\.|[ ](?:dot|DOT)[ ])"
SPELT_LOCAL = ATOM + rb"(?:" + DOT + ATOM + rb")*"
SPELT_DOMAIN = rb"(?:" + LABEL + DOT + rb")+(?:xn--[A-Za-z0-9]{2,59}|[A-Za-z]{2,24}|" + FOREIGN_TOP + rb")"
COMMON_TOP = (
    rb"(?:com|net|org|edu|gov|mil|info|biz|name|dev|app|io|co|ai|eu|de|uk|fr|ru|nl|ca|au|jp|cn|br|es|pl|ch|se|dk|cz)"
)
SPELT_EMAIL = compile_bytes(
    rb"<("
    + LOCAL
    + rb" at "
    + DOMAIN
    + rb")>|("
    + SPELT_LOCAL
    + AT
    + SPELT_DOMAIN
    + rb")|\b("
    + ATOM
    + rb"(?:[ ](?:dot|DOT)[ ]"
    + ATOM
    + rb"){0,3}[ ](?:at|AT)[ ](?:"
    + LABEL
    + rb"[ ](?:dot|DOT)[ ]){1,3}"
    + rb"(?i:"
    + COMMON_TOP
    + rb"))\b|\b("
    + LOCAL
    + rb"_(?:at|AT)_"
    + LABEL
    + rb"(?:(?:\.|_(?:dot|DOT)_)"
    + LABEL
    + rb"){0,2}(?:\.|_(?:dot|DOT)_)(?i:com|net|org|edu|gov))\b"
)
SPELT_HINT = (
    rb" at [^ <>]*>|[\[({<] ?(?:" + AT_WORDS + rb") ?[\])}>]|[ ](?:at|AT)[ ][A-Za-z0-9-]+[ ](?:dot|DOT)[ ]|_(?:at|AT)_"
)
_NO_NAMES = b"""
us me him her them it look looking looks visit found available online here there find go going see meet meeting live
lives work works working is are was were be been check out up reach site website page read more learn now today stay
located join us, and or that this which what where when how you we they
"""
NO_NAMES = frozenset(_NO_NAMES.split())
"""words before "at example dot com" that are not names: the address is a site's"""

_ENDINGS = b"""
png jpg jpeg gif svg webp avif heic heif tif tiff bmp ico icns psd xcf eps raw dng jxl apng jfif css scss sass less js
mjs cjs jsx tsx json jsonl yaml yml toml ini cfg conf xml html htm xhtml shtml php asp aspx jsp pdf txt csv tsv log lock
wasm vue svelte ipynb doc docx xls xlsx ppt pptx odt ods rtf tex bib epub wav ogg flac mkv webm avi tar gz tgz bz xz rar
jar war whl deb rpm dmg exe dll msi apk aab ipa iso img bin dat sqlite java class kt rb swift cpp hpp cxx hxx hs clj exs
erl lua tcl awk diff patch orig bak tmp swp ttf otf woff eot pem crt cer csr pfx plist nib xib storyboard strings proto
gradle lib obj dylib dSYM framework xcodeproj localdomain
service socket timer mount automount slice scope device swap path
"""
ENDINGS = frozenset(_ENDINGS.lower().split())
"""ends of names of files, and of systemd's units: none of them is a top-level domain"""
SERVICES = frozenset(b"git hg svn bzr cvs anoncvs anonymous gitolite gitea forgejo gogs aur".split())
"""accounts of version control: git@github.com:owner/name.git is an address of a repository"""
RELEASE = re.compile(rb"v?[0-9]+\.[0-9]")  # package@1.0.0-rc.one
DENSITY = re.compile(rb"[0-9](?:\.[0-9])?x(?:[^A-Za-z]|$)")  # icon@2x.png
SSH_DOMAINS = re.compile(
    rb"(?:openssh\.com|libssh\.org|lysator\.liu\.se|ssh\.com|tartarus\.org|amazon\.com|tinyssh\.org)$"
)
SSH_NAME = re.compile(
    rb"(?:sk-)?(?:zlib|none|hmac|umac|poly1305|aes|chacha|rijndael|twofish|blowfish|serpent|arcfour|3des|des|cast128|seed|camellia"
    rb"|curve|sntrup|mlkem|kex|ext-info|diffie|ecdh|ecdsa|ssh|rsa|dsa|ed25519|webauthn|sig|spki|pgp|hostkeys?|auth-agent"
    rb"|agent|session-bind|restrict-destination|associated|eow|no-more-sessions|keepalive|simple|winadj|x11|pty|statvfs"
    rb"|fstatvfs|posix-rename|hardlink|fsync|lsetstat|limits|expand-path|copy-data|home-directory|users-groups-by-id|tun"
    rb"|ping|pong|publickey|streamlocal|forwarded|direct|cancel|exit-signal|verify|crypticore|group|des-cbc)(?:[-0-9+].*)?$"
)
EDGE_BYTES = 4


def spelt_emails(data: bytes) -> Iterator[tuple[int, int]]:
    """Addresses whose @ is a word. Linear."""
    for match in SPELT_EMAIL.finditer(data):
        start, end = match.span(match.lastindex or 0)
        if match.lastindex == 3 and data[start:end].partition(b" ")[0].lower() in NO_NAMES:
            continue
        yield start, end


def emails(data: bytes) -> Iterator[tuple[int, int]]:
    """Addresses with an @. Linear."""
    for match in EMAIL.finditer(data):
        start, end = match.span()
        if end < len(data) and (data[end] in WORD_BYTES or _goes_on(data, end)):
            continue
        start = _own_script(data, start, end)
        local, _, domain = data[start:end].partition(b"@")
        name = local.lstrip(b"'-")
        if _is_address(name, domain):
            yield start + len(local) - len(name), end


def wide_emails(data: bytes) -> Iterator[tuple[int, int]]:
    """Addresses with letters of scripts that take three bytes: 用户@例子.中国. Linear."""
    for match in WIDE_EMAIL.finditer(data):
        start, end = match.span()
        at = data.find(b"@", start, end)
        if data[at - 1] < 128 and data[at + 1 : end].isascii():
            continue  # an address of ASCII behind a word
        if data[end - 1] < 128 and end < len(data) and data[end] in WORD_BYTES:
            continue
        start = _own_script(data, start, end) if data[at - 1] < 128 else start
        if _is_address(data[start:at], data[at + 1 : end]):
            yield start, end


def _is_address(local: bytes, domain: bytes) -> bool:
    """Whether both parts have the lengths of an address and may be a person's."""
    if not local or len(local) > 64 or len(domain) > 255:
        return False
    name, host = local.lower(), domain.lower()
    if host.rpartition(b".")[2] in ENDINGS or name in SERVICES or RELEASE.match(host) or DENSITY.match(host):
        return False
    return not (SSH_DOMAINS.search(host) and SSH_NAME.match(name))


def _goes_on(data: bytes, end: int) -> bool:
    """Whether a letter of two bytes stands behind an address that ends in one: no top-level domain."""
    return data[end - 1] > 127 and 0xC3 <= data[end] <= 0xDF


def _own_script(data: bytes, start: int, end: int) -> int:
    """Where an address begins whose name is of ASCII and Latin: letters of another script before it are a word."""
    at = data.find(b"@", start, end)
    if data[at - 1] > 127:
        return start
    for place in range(at - 1, start - 1, -1):
        if data[place] >= 0xCD:  # the first byte of Greek, Cyrillic and what comes after them
            behind = place + (2 if data[place] < 0xE0 else 3)
            return behind + len(data[behind:at]) - len(data[behind:at].lstrip(b".-_'"))
    return start
