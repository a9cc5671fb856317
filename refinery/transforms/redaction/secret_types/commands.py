"""Passwords in calls of programs and in files that programs read: sshpass, mysql, docker login, .netrc, .pgpass.

Each program has options of its own; sources are their manuals: sshpass(1), mysql(1), redis-cli, mongo, sqlcmd, ldap(1),
docker-login(1), smbclient(1), htpasswd(1), openssl-passphrase-options(1), curl(1), netrc(5), PostgreSQL's documentation
(33.16, the password file), ConvertTo-SecureString of PowerShell.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from refinery.transforms.redaction.pii_types.scan import compile_bytes
from refinery.transforms.redaction.secret_types.context import NEVER, is_password, is_placeholder

VALUE = rb"(?:\"([^\"\n]{4,200})\"|'([^'\n]{4,200})'|([^\s\"'`<>|;&)]{4,200}))"
_P = rb"[ \t]-p[ \t=]?" + VALUE
_CAPITAL_P = rb"[ \t]-P[ \t=]?" + VALUE
# Programs, and what stands before the password in their arguments.
OPTIONS: tuple[tuple[str, bytes], ...] = (
    ("sshpass", _P),
    ("mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlsh mysqlcheck mysqlbinlog mariadb mariadb-dump mycli", _P),
    ("mongo mongosh mongodump mongorestore mongoimport mongoexport mongostat", _P),
    ("docker podman buildah nerdctl helm oras crane skopeo", rb"\blogin\b[^\n|;]{0,120}?[ \t]-p[ \t=]?" + VALUE),
    ("az", rb"\blogin\b[^\n|;]{0,120}?[ \t]-p[ \t=]?" + VALUE),
    ("redis-cli", rb"[ \t]-a[ \t=]?" + VALUE),
    ("sqlcmd osql bcp isql fbcp ipmitool snmpwalk clickhouse-client unzip zip", _CAPITAL_P),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapcompare", rb"[ \t]-w[ \t=]?" + VALUE),
    ("psexec wmiexec evil-winrm winexe rdesktop 7z 7za rar unrar cqlsh nxc crackmapexec", _P),
    ("plink pscp psftp", rb"[ \t]-pw[ \t=]" + VALUE),
    ("xfreerdp wfreerdp mstsc", rb"[ \t]/p:" + VALUE),
    ("smbclient rpcclient smbget", rb"[ \t]-U[ \t=]?[\"']?[^\s%\"']{1,64}%" + VALUE),
    ("openssl", rb"[ \t]-pass(?:in|out)?[ \t]+[\"']?pass:" + VALUE),
    ("openssl", rb"[ \t]-k[ \t]+" + VALUE),
    ("htpasswd", rb"[ \t]-[a-zA-Z]*b[a-zA-Z]*[ \t]+(?:\S{1,200}[ \t]+)?\S{1,64}[ \t]+" + VALUE + rb"(?:\s|$)"),
    ("lftp", rb"[ \t]-u[ \t]*[^\s,]{1,64}," + VALUE),
    ("http https xh", rb"[ \t](?:-a|--auth)[ \t=]?[^\s:]{1,64}:" + VALUE),
    ("sqlplus sqlldr expdp impdp rman", rb"[ \t][\"']?[A-Za-z][\w$#]{1,30}/" + VALUE + rb"(?:@|\s|$)"),
    ("wpa_passphrase", rb"[ \t]+(?:\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'|\S{1,64})[ \t]+" + VALUE),
    ("nmcli", rb"[ \t]password[ \t]+" + VALUE),
    ("net", rb"[ \t]+use[ \t][^\n]{0,120}?/user:\S{1,64}[ \t]+" + VALUE),
    ("net", rb"[ \t]+use[ \t]+\S{1,80}(?:[ \t]+\\\\\S{1,120})?[ \t]+" + VALUE + rb"[ \t]+/user:"),
    ("net", rb"[ \t]+user[ \t]+\S{1,64}[ \t]+" + VALUE + rb"[ \t]+/add"),
    ("ConvertTo-SecureString", rb"(?:[ \t]+-(?:String|AsPlainText|Force)){0,3}[ \t]+" + VALUE),
)
PIPED = re.compile(
    rb"(?:echo|printf)[ \t]+(?:-[en]+[ \t]+)?[\"']?(?:"
    rb"[\w.-]{1,32}:([^\s\"'|]{4,128}?)(?:\\n)?[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd"
    rb"|([^\s\"'|]{4,128}?)(?:\\n)?[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+-S|(?:sudo[ \t]+)?passwd[ \t]+--stdin))"
)
_BY_PROGRAM: dict[bytes, list[re.Pattern[bytes]]] = {}
for _names, _pattern in OPTIONS:
    for _name in _names.split():
        _BY_PROGRAM.setdefault(_name.lower().encode(), []).append(re.compile(_pattern))
_ALL = b"|".join([re.escape(name) for name in sorted(_BY_PROGRAM, key=lambda name: -len(name))])
HINT = (
    rb"(?i)\b(?:"
    + _ALL
    + rb")(?:\.exe)?[ \t]|[ \t]chpasswd\b|\|[ \t]*(?:sudo[ \t]+-S|(?:sudo[ \t]+)?passwd[ \t]+--stdin)"
)
PROGRAM = rb"(?i)(?:^|[\s\"'`$(/\\;&|])(" + _ALL + rb")(?:\.exe)?([ \t])"
PROGRAMS = compile_bytes(PROGRAM)
NETRC_HINT = rb"(?:login|account)\s+\S+\s+password\s"
NETRC = compile_bytes(
    rb"(?:\bmachine\s+\S{1,200}\s+|\bdefault\s+)?\b(?:login|account)\s+\S{1,200}\s+password\s+([^\s\"']{3,200})"
)
PGPASS_HINT = rb"[\w*]:(?:\*|[0-9]+):[^\s:/]+:[^\s:/]+:"
PGPASS = compile_bytes(rb"(?m)^[\w.*-]{1,128}:(?:\*|[0-9]{2,5}):[\w.*-]{1,64}:[\w.*@-]{1,64}:([^\s:]{4,200})[ \t\r]*$")
LINE = 400  # bytes of a call that are read
ADDRESS = re.compile(rb"[A-Za-z._-]+@[A-Za-z.-]*")
COMPILER_LIKE = re.compile(rb"(?:error|warning|note|info|debug)", re.IGNORECASE)


def in_calls(data: bytes, programs: Iterable[Any] | None = None) -> Iterator[tuple[int, int]]:
    """Passwords among the arguments of programs. programs: the matches of PROGRAM, if they are known. Linear: a call is
    read up to LINE bytes."""
    for match in PROGRAMS.finditer(data) if programs is None else programs:
        begin = match.start(2)
        stop = _end_of_call(data, begin)
        for pattern in _BY_PROGRAM[match.group(1).lower()]:
            found = pattern.search(data, begin, stop)
            if found and found.lastindex and (span := _span(found)):
                attached = data[span[0] - 1 : span[0]].isalpha()
                if _is_password(data[span[0] : span[1]], attached):
                    yield span
    if b"chpasswd" in data or b"sudo -S" in data or b"--stdin" in data:
        for piped in PIPED.finditer(data):
            span = piped.span(piped.lastindex or 0)
            if _is_password(data[span[0] : span[1]]):
                yield span


def in_netrc(data: bytes) -> Iterator[tuple[int, int]]:
    """Passwords of `machine … login … password …`, on one line or several. Linear."""
    for match in NETRC.finditer(data):
        if _is_password(match.group(1)):
            yield match.span(1)


def in_pgpass(data: bytes) -> Iterator[tuple[int, int]]:
    """Passwords of `host:port:database:user:password`. Linear."""
    for match in PGPASS.finditer(data):
        value = match.group(1)
        if is_password(value, quoted=False) and not is_placeholder(value) and not COMPILER_LIKE.search(match.group(0)):
            yield match.span(1)


def _end_of_call(data: bytes, begin: int) -> int:
    """Where the arguments end: at the line's end, unless a backslash goes on with it."""
    stop = min(len(data), begin + LINE)
    at = begin
    while (newline := data.find(b"\n", at, stop)) >= 0:
        if data[newline - 1 : newline] != b"\\":
            return newline
        at = newline + 1
    return stop


def _span(match: re.Match[bytes]) -> tuple[int, int] | None:
    for group in range(1, (match.lastindex or 0) + 1):
        if match.start(group) >= 0 and match.end(group) > match.start(group):
            return match.span(group)
    return None


def _is_password(value: bytes, attached: bool = False) -> bool:
    """Whether an argument is a password: no variable, no placeholder, no word in capitals, no option.

    attached: it stands directly behind its option (`-pswordfish`), so even a word is one.
    """
    if value.lower() in NEVER or value.startswith((b"-", b"$", b"%", b"<", b"@")) or is_placeholder(value):
        return False
    if value.isdigit() or ADDRESS.fullmatch(value) or (value.isalpha() and value.isupper()):
        return False
    return is_password(value, quoted=True) or (attached and value.isalpha() and len(value) >= 6)
