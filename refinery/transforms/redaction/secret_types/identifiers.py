"""Whether a value without quotes is an identifier of code: a variable, a member, a type, which holds no secret itself.

In code a secret is a literal, so it stands in quotes; without them stands a name. Settings (.env, YAML, .properties)
have no quotes, so where the line does not say which it is, a value counts as a name only if it is made of words and one
of these is a programmer's.
"""

import re

from refinery.transforms.redaction.secret_types.context import WORDS

NAME = re.compile(rb"[A-Za-z_$][A-Za-z0-9_$]*(?:(?:\?\.|\.|::|->)[A-Za-z_$][A-Za-z0-9_$]*)*")
_WORDS = """
access account admin algorithm api app arg args argument array auth base bearer block bool buf buffer byte bytes cert
char cipher class client code conf config connection const content context cookie copy count creds credential
credentials ctx current data db dec decoded decrypted def default dict digest dst dto email enc encoded encrypted
encryption entity entry env event expected factory field fields file final first flag fmt form format from func function
generate generated get handler has hash header headers helper hex hmac id idx index info init input int invalid is item
iv json jwt key keys kwargs last len length line list login manager map master md message meta mock model msg my name
new next node null num number oauth obj object of old option options out output p param parameter params parsed
pass passphrase passwd password passwords path payload plain pointer prefix prev previous private props provider ptr
public pub pw pwd query random raw read ref refresh remote req request res response result ret root rsa salt sec secret
secrets self service session set sha signature size source spec src ssh state str string struct temp test text this tls
tmp to token tokens type types uint url user username users utf uuid val valid value values var version vec with xml aes
ecdsa ed curve ssl pbkdf argon bcrypt scrypt des material instance store storage wrapper
"""
PROGRAMMING = frozenset(_WORDS.split())
DECLARES = re.compile(
    rb"(?:^|[\s({,;])(?:let|const|var|val|auto|final|static|public|private|protected|internal|readonly|mut|my|our|local"
    rb"|return|if|elif|while|assert|def|fn|func|function|new|String|string|str|char|byte|bool|std::string|SecretStr"
    rb"|unsigned|await|async)\b|\b(?:self|this)(?:\.|->)[\w.]*$|->\w*$|@\w*$"
)
CLOSES = b";,)]}+"
COMPARES = (b"==", b"!=", b"=>", b"->", b"+=", b"?=", b"||", b"&&")
LINE = 120  # bytes of a line that are looked at


def is_code_name(value: bytes) -> bool:
    """Whether a value has the form of an identifier or of a member of one."""
    return NAME.fullmatch(value) is not None


def is_of_words(value: bytes) -> bool:
    """Whether an identifier is made of words and at most two numbers, as what is drawn at random hardly ever is.

    >>> is_of_words(b"newPassword1"), is_of_words(b"Sha256Digest"), is_of_words(b"IhqSb1Gg")
    (True, True, False)
    """
    words, numbers = _words(value)
    return bool(words) and numbers <= 2 and all(word in PROGRAMMING or len(word) != 2 for word in words)


def is_wordy(value: bytes) -> bool:
    """Whether an identifier is made of words, and one of them is a programmer's.

    >>> is_wordy(b"newPassword1"), is_wordy(b"sha256WithRSA4096Key"), is_wordy(b"KrAcMe12345"), is_wordy(b"hunter2")
    (True, True, False, False)
    """
    words, numbers = _words(value)
    known = [word for word in words if word in PROGRAMMING]
    short = len(words) + numbers < 4
    return any(len(word) > 2 or short for word in known) and is_of_words(value)


def _words(value: bytes) -> tuple[list[str], int]:
    """The words of an identifier in small letters, and how many numbers it has; nothing for what is none."""
    if not is_code_name(value):
        return [], 0
    pieces = WORDS.findall(value.decode())
    words = [piece.lower() for piece in pieces if not piece.isdigit()]
    return words, len(pieces) - len(words)


def is_in_code(data: bytes, name_end: int, operator: bytes, start: int, end: int) -> bool:
    """Whether the line says that it is code, so data[start:end] without quotes is a name.

    name_end: where the name ends that it is assigned to; operator: what stands between.
    """
    begin = max(0, name_end - LINE)
    line = data[max(begin, data.rfind(b"\n", begin, name_end) + 1) : name_end]
    if line.count(b'"') % 2 or line.count(b"'") % 2:
        return False  # inside a text
    if operator.rstrip().endswith(COMPARES):
        return True
    spaced = operator[:1] in (b" ", b"\t") and operator[-1:] in (b" ", b"\t")
    declared = DECLARES.search(line) is not None
    closed = data[end] if end < len(data) else 10
    if b"=" in operator:
        if spaced:
            return closed in CLOSES or declared
        return closed in b",)" and _opens(line) and is_of_words(data[start:end])
    annotated = closed in (b",)}" if operator.endswith((b" ", b"\t")) else b",}") and operator.rstrip(b" \t") == b":"
    annotated = annotated and (declared or _opens(line))
    return annotated and is_of_words(data[start:end])


def _opens(line: bytes) -> bool:
    """Whether a bracket is open before the name: of a call, of parameters, of an object."""
    return line.count(b"(") > line.count(b")") or line.count(b"{") > line.count(b"}")
